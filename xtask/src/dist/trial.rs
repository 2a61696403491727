//! The release, tried as by a user who has nothing but one of its files: no variable of this process is set, no program
//! of the repository is in `PATH`.

mod own_algorithms;
mod packages;

use std::path::Path;
use std::process::Command;

use super::{Release, VERSION, completions, contents, deb, files, licences, links, output, succeeds};

/// Tries the archive, the Debian packages and the wheel.
///
/// # Errors
/// If one of them does not do its work.
pub fn run(release: &Release<'_>, wheel: Option<&Path>) -> Result<(), String> {
    in_a_home(|home| {
        archive(release, home)?;
        debian(release, home)?;
        wheel.map_or(Ok(()), |wheel| python(wheel, home))
    })
}

/// Tries the Debian packages alone.
///
/// # Errors
/// If one of them does not do its work.
pub fn packages(release: &Release<'_>) -> Result<(), String> {
    in_a_home(|home| debian(release, home))
}

/// Calls `work` with an empty directory that is removed after it.
fn in_a_home(work: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let home = std::env::temp_dir().join(format!("fairrate-dist-{}", std::process::id()));
    files::empty(&home)?;
    let tried = work(&home);
    std::fs::remove_dir_all(&home).map_err(|e| format!("cannot remove {}: {e}", home.display()))?;
    tried
}

/// Unpacks the archive, follows its first page, and looks at what lies beside the programs.
fn archive(release: &Release<'_>, home: &Path) -> Result<(), String> {
    let sums = release.out.join("SHA256SUMS");
    succeeds(Command::new("sha256sum").args(["--check", "--quiet"]).arg(sums).current_dir(&release.out))?;
    let file = files::with_extension(&release.out, "gz")?.pop().ok_or("there is no archive")?;
    succeeds(Command::new("tar").arg("--extract").arg("--file").arg(&file).arg("--directory").arg(home))?;
    let top = home.join(files::name(&file).trim_end_matches(".tar.gz"));
    for name in &release.programs {
        says_version(&mut alone(&top.join("bin").join(name), home), name)?;
    }
    let mut said = String::new();
    for command in contents::first_commands() {
        let print = output(alone(Path::new("sh"), home).args(["-c", command]).current_dir(&top))?;
        said += &String::from_utf8_lossy(&print);
    }
    if !said.contains("Its completion time") {
        return Err(format!("the commands of README.txt do not explain a flow: {said}"));
    }
    for file in [
        "README.txt",
        "share/doc/fairrate/sbom.cdx.json",
        "share/doc/fairrate/THIRD-PARTY-LICENCES.txt",
        "share/doc/fairrate/docs/tutorial.md",
        "share/doc/fairrate/docs/algorithms/powertcp.md",
        "share/fairrate/examples/field/incast.toml",
        "include/fairrate.h",
    ] {
        has(&top.join(file))?;
    }
    for name in &release.programs {
        has(&top.join(format!("share/man/man1/{name}.1")))?;
    }
    let n_links = no_dead_link(&top)?;
    println!(
        "tried: {}: a run and its explanation, the versions of {} programs, {n_links} links",
        files::name(&file),
        release.programs.len()
    );
    own_algorithms::run(&top)
}

/// Unpacks the Debian packages, runs their programs and checks their units.
fn debian(release: &Release<'_>, home: &Path) -> Result<(), String> {
    for package in &files::with_extension(&release.out, "deb")? {
        let name = files::name(package).split('_').next().unwrap_or_default().to_owned();
        let to = home.join("deb").join(&name);
        std::fs::create_dir_all(&to).map_err(|e| format!("cannot make {}: {e}", to.display()))?;
        succeeds(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&to))?;
        says_version(&mut alone(&to.join("usr/bin").join(&name), home), &name)?;
        let depends = output(Command::new("dpkg-deb").arg("--field").arg(package).arg("Depends"))?;
        let depends = String::from_utf8_lossy(&depends).trim().to_owned();
        if !depends.contains("libc6") {
            return Err(format!("{name} does not say that it needs libc6: `{depends}`"));
        }
        if name != "fairrate" {
            let unit = to.join(format!("usr/lib/systemd/system/{name}.service"));
            has(&unit)?;
            has_known_keys(&unit)?;
        }
        has(&to.join(format!("usr/share/man/man1/{name}.1.gz")))?;
        for (_, file) in completions(&name) {
            has(&to.join("usr/share").join(file))?;
        }
        let doc = to.join("usr/share/doc").join(&name);
        has(&doc.join("changelog.gz"))?;
        has(&doc.join("CHANGELOG.md")).or_else(|_| has(&doc.join("CHANGELOG.md.gz")))?;
        lint(package)?;
        no_dead_link(&to)?;
        println!("tried: {}: its program runs; it needs {depends}", files::name(package));
        if name != "fairrate" {
            let lived = packages::live(package, &name, home)?;
            let how = if lived {
                "dpkg installs, updates and purges it where systemd fails"
            } else {
                "not by dpkg, which needs root"
            };
            println!("tried: {}: {how}", files::name(package));
        }
    }
    Ok(())
}

/// Installs the wheel in an environment of its own, runs the command line and the library.
fn python(wheel: &Path, home: &Path) -> Result<(), String> {
    let venv = home.join("venv");
    succeeds(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let mut install = Command::new(venv.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).arg(wheel);
    succeeds(&mut install)?;
    says_version(&mut alone(&venv.join("bin/fairrate"), home), "fairrate")?;
    let scenario = "[topology]\nkind = \"star\"\nhosts = 3\n\n[transport]\ncc = \"dctcp\"\n\n[[traffic]]\n\
                    kind = \"incast\"\nsenders = 2\nreceiver = \"h2\"\nbytes = \"100KB\"\n";
    let file = home.join("scenario.toml");
    files::write(&file, scenario.as_bytes())?;
    let by_command = home.join("by-command");
    output(alone(&venv.join("bin/fairrate"), home).arg("run").arg(&file).arg("--out").arg(&by_command))?;
    let script = format!("import fairrate; print(fairrate.run({:?}).fingerprint)", file.display().to_string());
    let print = output(alone(&venv.join("bin/python"), home).args(["-c", &script]))?;
    let fingerprint = String::from_utf8_lossy(&print).trim().to_owned();
    let summary = std::fs::read_to_string(by_command.join("summary.json")).unwrap_or_default();
    if fingerprint.is_empty() || !summary.contains(&fingerprint) {
        return Err(format!("the library and the command line of the wheel differ: {fingerprint}"));
    }
    let mut check = alone(&venv.join("bin/python"), home);
    let files = output(check.args(["-c", INSTALLED]))?;
    let files = String::from_utf8_lossy(&files).into_owned();
    for name in [&format!("licenses/{}", licences::FILE), "sboms/fairrate.cdx.json"] {
        if !files.contains(name) {
            return Err(format!("the wheel has no {name}: {files}"));
        }
    }
    if files.contains("LEAK") {
        return Err(format!("the wheel's bill of materials names directories: {files}"));
    }
    println!(
        "tried: {}: `fairrate` and `import fairrate` run the same scenario alike, with notices",
        files::name(wheel)
    );
    Ok(())
}

/// Prints the files of the installed package, whose checksums have to be those of its RECORD.
const INSTALLED: &str = "\
import base64, hashlib, importlib.metadata
for file in importlib.metadata.files('fairrate'):
    data = file.locate().read_bytes()
    if file.hash and 'bin/' not in str(file):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
        assert file.hash.value == digest, file
    print(file, 'LEAK' if 'sboms' in str(file) and b'file://' in data else '')
assert 'THIRD-PARTY-LICENCES.txt' in importlib.metadata.metadata('fairrate').get_all('License-File')
";

/// Checks that all links of pages below `dir` lead to files that are there. Returns their number.
fn no_dead_link(dir: &Path) -> Result<usize, String> {
    let (n, dead) = links::dead(dir)?;
    if dead.is_empty() { Ok(n) } else { Err(format!("links that lead nowhere:\n{}", dead.join("\n"))) }
}

/// Checks that this machine's systemd, if it has one, knows all keys of a unit. That it does not find the program is no
/// matter.
fn has_known_keys(unit: &Path) -> Result<(), String> {
    let Ok(said) = Command::new("systemd-analyze").arg("verify").arg(unit).output() else { return Ok(()) };
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    if said.contains("Unknown") {
        Err(format!("systemd does not know all of {}: {said}", unit.display()))
    } else {
        Ok(())
    }
}

/// Checks that Debian's lintian, if this machine has it, finds no error. A maintainer without an address is one that it
/// is not asked for if none is given.
fn lint(package: &Path) -> Result<(), String> {
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error"]);
    if deb::contact()[1].is_none() {
        lintian.args(["--suppress-tags", "malformed-contact"]);
    }
    let Ok(done) = lintian.arg(package).output() else {
        println!("not run: lintian is missing: {} was not held against Debian's rules", files::name(package));
        return Ok(());
    };
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    if !done.status.success() {
        return Err(format!("lintian finds errors in {}:\n{}", files::name(package), said.trim()));
    }
    println!(
        "tried: {}: lintian finds no error, {} warnings",
        files::name(package),
        said.lines().filter(|line| line.starts_with("W:")).count()
    );
    Ok(())
}

/// Returns a command that has no variables but a plain `PATH`, in the directory `home`.
fn alone(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home).current_dir(home);
    command
}

/// Checks that a program prints the version of the release.
fn says_version(command: &mut Command, name: &str) -> Result<(), String> {
    let print = output(command.arg("--version"))?;
    let print = String::from_utf8_lossy(&print);
    if print.trim() == format!("{name} {VERSION}") { Ok(()) } else { Err(format!("{name} says `{}`", print.trim())) }
}

/// Checks that a file is there and not empty.
fn has(path: &Path) -> Result<(), String> {
    match path.metadata() {
        Ok(metadata) if 0 < metadata.len() => Ok(()),
        _ => Err(format!("{} is missing", path.display())),
    }
}
