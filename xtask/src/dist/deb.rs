//! Debian packages: the laboratory, the allocator and the agent.

mod scripts;
mod texts;

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Release, VERSION, files, licences, links, output, succeeds};

/// A package: what it has of the stage, by path or by the beginning of one that ends with `*`.
struct Package {
    name: &'static str,
    summary: &'static str,
    about: &'static str,
    files: &'static [&'static str],
    /// The unit of systemd that it brings, without `.service`.
    unit: Option<&'static str>,
    /// Packages that it needs beside the libraries of its programs, each with a comma before it.
    depends: &'static str,
    /// Files of the repository that lie beside its licence too: pages, and a commented configuration.
    pages: &'static [&'static str],
    /// The package with its documentation, if that is another one.
    suggests: Option<&'static str>,
}

/// The packages; the laboratory, which has the pages of all its commands, is last.
const PACKAGES: [Package; 3] = [
    Package {
        name: "fairrate-allocator",
        summary: "allocator of rates for datacenter flows",
        about: "Flowtune's central allocator as a service: agents on hosts tell it of flows,\n and it tells them rates.",
        files: &[
            "bin/fairrate-allocator",
            "share/man/man1/fairrate-allocator*",
            "share/bash-completion/completions/fairrate-allocator",
            "share/zsh/site-functions/_fairrate-allocator",
            "share/fish/vendor_completions.d/fairrate-allocator.fish",
            "share/fairrate/packaging/grafana-allocator.json",
            "share/fairrate/packaging/alerts-allocator.yml",
            "share/fairrate/packaging/alerts-allocator.test.yml",
        ],
        unit: Some("fairrate-allocator"),
        // `systemctl reload` calls `/bin/kill`, which the smallest systems lack.
        depends: ", procps",
        pages: &["docs/allocator.md", "docs/runbook.md", "docs/upgrade.md", "packaging/allocator.toml"],
        suggests: Some("fairrate"),
    },
    Package {
        name: "fairrate-agent",
        summary: "endpoint of fairrate's allocator for the TCP connections of a host",
        about: "Tells Flowtune's allocator of the flowlets of a host and paces them as it\n says, by eBPF. Brings congestion \
                control algorithms for the kernel too.",
        files: &[
            "bin/fairrate-agent",
            "bin/fairrate-kernel",
            "share/man/man1/fairrate-agent*",
            "share/man/man1/fairrate-kernel*",
            "share/bash-completion/completions/fairrate-agent",
            "share/bash-completion/completions/fairrate-kernel",
            "share/zsh/site-functions/_fairrate-agent",
            "share/zsh/site-functions/_fairrate-kernel",
            "share/fish/vendor_completions.d/fairrate-agent.fish",
            "share/fish/vendor_completions.d/fairrate-kernel.fish",
        ],
        unit: Some("fairrate-agent"),
        depends: "",
        pages: &["docs/agent.md", "docs/kernel.md", "docs/runbook.md", "docs/upgrade.md", "packaging/agent.toml"],
        suggests: Some("fairrate"),
    },
    Package {
        name: "fairrate",
        summary: "laboratory for datacenter congestion control",
        about: "Simulates congestion control algorithms on datacenter networks, compares\n them, and draws the figures of \
                their papers. Has the documentation of all\n of fairrate's packages, and the sources that \
                algorithms of one's own are\n built with.",
        files: &[
            "bin/fairrate",
            "bin/fairrate-picture",
            "bin/fairrate-testbed",
            "bin/fairrate-watch",
            "include/*",
            "share/bash-completion/*",
            "share/fish/*",
            "share/zsh/*",
            "share/doc/fairrate/*",
            "share/fairrate/*",
            "share/man/man1/fairrate.1",
            "share/man/man1/fairrate-*",
        ],
        unit: None,
        depends: "",
        pages: &[],
        suggests: None,
    },
];

/// Makes the packages of the programs that are part of a release.
///
/// # Errors
/// If dpkg's tools are missing, or a file cannot be written.
pub fn make(release: &Release<'_>) -> Result<(), String> {
    let architecture = match output(Command::new("dpkg").arg("--print-architecture")) {
        Ok(name) => String::from_utf8_lossy(&name).trim().to_owned(),
        Err(why) if release.options.if_possible => {
            println!("left out: Debian packages: {why}");
            return Ok(());
        }
        Err(why) => return Err(format!("Debian packages need dpkg: {why}")),
    };
    PACKAGES.iter().filter(|package| release.programs.contains(&package.name)).try_for_each(|package| {
        let tree = release.stage.with_file_name("dist-deb").join(package.name);
        files::empty(&tree)?;
        package.fill(release, &tree)?;
        let control = package.control(release, &tree, &architecture)?;
        files::write(&tree.join("DEBIAN/control"), control.as_bytes())?;
        let file = release.out.join(format!("{}_{VERSION}_{architecture}.deb", package.name));
        pack(&tree, &file, &texts::time(release.root))
    })
}

/// Writes the package of the directory `tree` to `file`. No file in it is newer than `time`, in seconds since 1970.
fn pack(tree: &Path, file: &Path, time: &str) -> Result<(), String> {
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build"]).arg(tree).arg(file).env("SOURCE_DATE_EPOCH", time);
    output(&mut build).map(|_| ())
}

/// Writes the scripts of the package in `tree`, which brings `unit`.
fn write_scripts(tree: &Path, unit: &str, has_users: bool) -> Result<(), String> {
    for (name, text) in scripts::of(unit, has_users) {
        let path = tree.join("DEBIAN").join(name);
        files::write(&path, text.as_bytes())?;
        succeeds(Command::new("chmod").arg("755").arg(path))?;
    }
    Ok(())
}

impl Package {
    /// Returns `true` if a file of the stage belongs to the package: to the first one that names it.
    fn has(&self, path: &str) -> bool {
        let names = |package: &&Self| {
            package.files.iter().any(|file| match file.strip_suffix('*') {
                Some(begin) => path.starts_with(begin),
                None => path == *file,
            })
        };
        PACKAGES.iter().find(names).is_some_and(|owner| owner.name == self.name)
    }

    /// Copies the package's files to `tree`, and its unit with what runs when it is installed and removed.
    fn fill(&self, release: &Release<'_>, tree: &Path) -> Result<(), String> {
        let usr = tree.join("usr");
        for path in files::all_below(&release.stage)? {
            let name = path.strip_prefix(&release.stage).unwrap_or(&path).to_string_lossy().into_owned();
            if !self.has(&name) {
                continue;
            }
            files::copy(&path, &usr.join(&name))?;
            if name.starts_with("share/man/") {
                succeeds(Command::new("gzip").args(["--best", "--no-name"]).arg(usr.join(&name)))?;
            }
        }
        let doc = usr.join("share/doc").join(self.name);
        let of_stage = release.stage.join("share/doc/fairrate");
        files::write(&doc.join("copyright"), texts::copyright(release.root)?.as_bytes())?;
        for name in ["LICENSE-APACHE", "LICENSE-MIT", licences::FILE] {
            files::copy(&of_stage.join(name), &doc.join(name))?;
        }
        self.copy_pages(release.root, &doc)?;
        let mut changes = vec![doc.join("changelog")];
        let text = texts::changelog(self.name, &maintainer(contact()), &texts::time(release.root))?;
        files::write(&changes[0], text.as_bytes())?;
        let own = doc.join("CHANGELOG.md");
        // Pages of the laboratory have links to its own.
        if !own.exists() {
            files::copy(&release.root.join("CHANGELOG.md"), &own)?;
            changes.push(own);
        }
        succeeds(Command::new("gzip").args(["--best", "--no-name"]).args(changes))?;
        let Some(unit) = self.unit else { return Ok(()) };
        let service = format!("lib/systemd/system/{unit}.service");
        files::copy(&release.stage.join(&service), &tree.join("usr").join(&service))?;
        let users = format!("lib/sysusers.d/{unit}.conf");
        let has_users = release.stage.join(&users).is_file();
        if has_users {
            files::copy(&release.stage.join(&users), &tree.join("usr").join(&users))?;
        }
        write_scripts(tree, unit, has_users)
    }

    /// Copies the pages of the repository `root` to `doc`, with links among them; a link to another page becomes text.
    fn copy_pages(&self, root: &Path, doc: &Path) -> Result<(), String> {
        let place = |path: &Path| {
            let is_here = self.pages.iter().any(|page| Path::new(page) == path);
            is_here.then(|| path.file_name().map(PathBuf::from)).flatten()
        };
        for page in self.pages.iter().map(Path::new) {
            let (text, from) = (files::read(&root.join(page))?, page.parent().unwrap_or(Path::new("")));
            let is_page = page.extension().is_some_and(|end| end == "md");
            let text = if is_page { links::moved(&text, (from, Path::new("")), &place) } else { text };
            files::write(&doc.join(files::name(page)), text.as_bytes())?;
        }
        Ok(())
    }

    /// Returns the description of the package, whose files are in `tree`, with the libraries that its programs need.
    fn control(&self, release: &Release<'_>, tree: &Path, architecture: &str) -> Result<String, String> {
        // Of the file of a source package it reads these lines.
        let work = release.stage.with_file_name("dist-deb").join("depends");
        files::write(
            &work.join("debian/control"),
            format!("Source: fairrate\n\nPackage: {}\nArchitecture: any\n", self.name).as_bytes(),
        )?;
        let programs = self.files.iter().filter(|file| file.starts_with("bin/")).map(|file| release.stage.join(file));
        let mut depends = Command::new("dpkg-shlibdeps");
        depends.arg("-O").args(programs).current_dir(&work);
        let depends = String::from_utf8_lossy(&output(&mut depends)?).trim().to_owned();
        let depends = depends.strip_prefix("shlibs:Depends=").unwrap_or_default();
        let files = files::all_below(&tree.join("usr"))?;
        let bytes: u64 = files.iter().filter_map(|path| path.metadata().ok()).map(|file| file.len()).sum();
        let suggests = self.suggests.map(|name| format!("Suggests: {name}\n")).unwrap_or_default();
        Ok(format!(
            "Package: {}\nVersion: {VERSION}\nArchitecture: {architecture}\nSection: net\nPriority: optional\n\
             Maintainer: {}\nInstalled-Size: {}\nDepends: {depends}{}\n{suggests}Description: {}\n {}\n",
            self.name,
            maintainer(contact()),
            bytes.div_ceil(1024),
            self.depends,
            self.summary,
            self.about
        ))
    }
}

/// Returns the maintainer's name and address, which are in the variables of Debian's own tools.
pub fn contact() -> [Option<String>; 2] {
    ["DEBFULLNAME", "DEBEMAIL"].map(|variable| std::env::var(variable).ok())
}

/// Returns the maintainer with this name and address.
fn maintainer([name, address]: [Option<String>; 2]) -> String {
    let name = name.unwrap_or_else(|| "the fairrate authors".to_owned());
    address.map_or_else(|| name.clone(), |address| format!("{name} <{address}>"))
}

/// Makes a package below `dir` that has the scripts of one with a unit and hardly more. Returns its path.
#[cfg(test)]
pub fn small(dir: &Path) -> Result<PathBuf, String> {
    let (tree, file) = (dir.join("tree"), dir.join("fairrate-test.deb"));
    files::write(&tree.join("usr/lib/systemd/system/fairrate-test.service"), b"[Service]\nExecStart=/bin/true\n")?;
    let control = "Package: fairrate-test\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n";
    files::write(&tree.join("DEBIAN/control"), control.as_bytes())?;
    write_scripts(&tree, "fairrate-test", true)?;
    pack(&tree, &file, "0").map(|()| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_belongs_to_one_package() {
        for (path, of) in [
            ("bin/fairrate", "fairrate"),
            ("share/man/man1/fairrate-run.1", "fairrate"),
            ("share/man/man1/fairrate-allocator.1", "fairrate-allocator"),
            ("share/man/man1/fairrate-allocator-keys.1", "fairrate-allocator"),
            ("share/man/man1/fairrate-agent-run.1", "fairrate-agent"),
            ("bin/fairrate-kernel", "fairrate-agent"),
            ("share/man/man1/fairrate-kernel-attach.1", "fairrate-agent"),
            ("share/man/man1/fairrate-testbed.1", "fairrate"),
            ("share/bash-completion/completions/fairrate", "fairrate"),
            ("share/zsh/site-functions/_fairrate-kernel", "fairrate-agent"),
            ("share/fish/vendor_completions.d/fairrate-allocator.fish", "fairrate-allocator"),
            ("share/doc/fairrate/README.md", "fairrate"),
            ("share/fairrate/crates/fairrate-control/src/lib.rs", "fairrate"),
            ("share/fairrate/packaging/grafana-allocator.json", "fairrate-allocator"),
            ("share/fairrate/packaging/alerts-allocator.yml", "fairrate-allocator"),
        ] {
            let owners: Vec<&str> = PACKAGES.iter().filter(|p| p.has(path)).map(|p| p.name).collect();
            assert_eq!(owners, [of], "{path}");
        }
    }

    /// Whoever has only this package finds the keys of its configuration.
    #[test]
    fn services_bring_their_pages() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let dir = std::env::temp_dir().join(format!("fairrate-pages-{}", std::process::id()));
        for package in PACKAGES.iter().filter(|package| package.unit.is_some()) {
            let doc = dir.join(package.name);
            package.copy_pages(&root, &doc).expect("they are there");
            let short = package.name.trim_start_matches("fairrate-");
            let unit = files::read(&root.join(format!("packaging/{}.service", package.name))).expect("it is there");
            assert!(unit.contains(&format!("file:///usr/share/doc/{}/{short}.md\n", package.name)), "{unit}");
            assert!([".md", ".toml"].iter().all(|end| doc.join(format!("{short}{end}")).is_file()), "{short}");
            let (n, dead) = links::dead(&doc).expect("they can be read");
            assert!(0 < n && dead.is_empty(), "{dead:?}");
        }
        std::fs::remove_dir_all(&dir).expect("it can be removed");
    }

    #[test]
    fn no_address_is_made_up() {
        assert_eq!(maintainer([None, None]), "the fairrate authors");
        assert_eq!(maintainer(["Ann", "ann@example.org"].map(|text| Some(text.to_owned()))), "Ann <ann@example.org>");
    }
}
