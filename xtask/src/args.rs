//! Arguments of a task: flags, options with a value, and words.

use std::ffi::OsString;

/// The arguments of a task that have not been read yet.
pub struct Args {
    task: String,
    rest: Vec<OsString>,
}

impl Args {
    /// Returns the arguments `rest` of `task`.
    pub fn new(task: &str, rest: Vec<OsString>) -> Self {
        Self { task: task.to_owned(), rest }
    }

    /// Takes a flag. Returns `true` if it is there.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.rest.len();
        self.rest.retain(|arg| arg != name);
        self.rest.len() < before
    }

    /// Takes all values of an option, written `--name VALUE` or `--name=VALUE`.
    ///
    /// # Errors
    /// If the last argument is the option, without a value.
    pub fn values(&mut self, name: &str) -> Result<Vec<OsString>, String> {
        let (mut values, mut others) = (Vec::new(), Vec::new());
        let mut rest = std::mem::take(&mut self.rest).into_iter();
        while let Some(arg) = rest.next() {
            let joined = arg.to_str().and_then(|arg| arg.strip_prefix(name)?.strip_prefix('='));
            if let Some(value) = joined {
                values.push(value.into());
            } else if arg == name {
                values.push(rest.next().ok_or_else(|| format!("`{name}` of `{}` needs a value", self.task))?);
            } else {
                others.push(arg);
            }
        }
        self.rest = others;
        Ok(values)
    }

    /// Takes the number that an option has, or returns `default`.
    ///
    /// # Errors
    /// If the value is no number.
    pub fn number(&mut self, name: &str, default: u32) -> Result<u32, String> {
        match self.values(name)?.pop() {
            None => Ok(default),
            Some(value) => {
                let number = value.to_str().and_then(|text| text.parse().ok());
                number.ok_or_else(|| format!("`{name}` of `{}` needs a number", self.task))
            }
        }
    }

    /// Takes the next word.
    ///
    /// # Errors
    /// If there is none.
    pub fn word(&mut self, what: &str) -> Result<OsString, String> {
        let at = self.rest.iter().position(|arg| !arg.to_string_lossy().starts_with("--"));
        at.map(|at| self.rest.remove(at)).ok_or_else(|| format!("`{}` needs {what}", self.task))
    }

    /// Checks that all arguments have been read.
    ///
    /// # Errors
    /// If one has not.
    pub fn end(&self) -> Result<(), String> {
        match self.rest.first() {
            None => Ok(()),
            Some(arg) => Err(format!("`{}` knows no argument `{}`", self.task, arg.to_string_lossy())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Args {
        Args::new("vm", text.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn flags_options_and_words_come_in_any_order() {
        let mut args = args("--with a script --memory=9 --if-possible --with=b");
        assert_eq!(args.values("--with"), Ok(vec!["a".into(), "b".into()]));
        assert_eq!((args.number("--memory", 1), args.number("--limit", 7)), (Ok(9), Ok(7)));
        assert!(args.flag("--if-possible") && !args.flag("--if-possible"));
        assert_eq!(args.word("a script"), Ok("script".into()));
        assert_eq!(args.end(), Ok(()));
    }

    #[test]
    fn what_is_missing_or_unknown_is_an_error() {
        assert_eq!(args("--with").values("--with"), Err("`--with` of `vm` needs a value".to_owned()));
        assert_eq!(args("--limit x").number("--limit", 7), Err("`--limit` of `vm` needs a number".to_owned()));
        assert_eq!(args("--what").word("a script"), Err("`vm` needs a script".to_owned()));
        assert_eq!(args("--what").end(), Err("`vm` knows no argument `--what`".to_owned()));
    }
}
