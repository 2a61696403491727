use fairrate_units::{Bytes, Rate, Time};

/// The form of an algorithm that the defaults describe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The algorithm as in its paper, with the paper's slips resolved.
    #[default]
    Paper,
    /// The algorithm as in PowerTCP's public ns-3 artifact.
    Ns3,
    /// The algorithm as in the public OMNeT++ code of RoCC's authors.
    RoccOmnet,
}

/// A configuration value as a file spells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RawValue<'a> {
    /// A string: a quantity with its unit, or a choice.
    Text(&'a str),
    /// A number with a decimal point.
    Float(f64),
    /// A whole number.
    Integer(i64),
    /// `true` or `false`.
    Bool(bool),
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A real number.
    Float,
    /// A whole number.
    Count,
    /// A switch.
    Bool,
    /// A time with unit.
    Time,
    /// A rate with unit.
    Rate,
    /// A size with unit.
    Bytes,
    /// One word of this list.
    Choice(&'static [&'static str]),
}

/// The scale on which a parameter is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are alike.
    Linear,
    /// Equal ratios are alike.
    Log,
}

/// A suggested range for a search over a parameter, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TuneRange {
    /// The lower end, as written in TOML.
    pub low: &'static str,
    /// The upper end, as written in TOML.
    pub high: &'static str,
    /// The scale between them.
    pub scale: Scale,
}

/// A parameter with its present value.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Key in the scenario file.
    pub name: &'static str,
    /// Type.
    pub kind: ParamKind,
    /// The value as it is written in TOML.
    pub toml: String,
    /// Meaning and source.
    pub doc: &'static str,
    /// The range in which a search for good values begins, if one is suggested.
    pub tune: Option<TuneRange>,
}

/// The reason why a parameter was not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetParamError {
    /// The algorithm has no such parameter.
    UnknownName,
    /// The value has the wrong type or is out of range.
    Invalid {
        /// Description of the fault.
        message: String,
        /// A correct way to write the value.
        help: String,
    },
}

/// Parameters by name, for files and listings.
pub trait Parameters {
    /// Returns all parameters with their present values, in declaration order.
    fn params(&self) -> Vec<Param>;
    /// Sets parameter `name` to `value`.
    ///
    /// # Errors
    /// If there is no parameter `name`, or `value` is of another type or out of range.
    fn set(&mut self, name: &str, value: RawValue<'_>) -> Result<(), SetParamError>;
}

/// A type that a parameter can have.
pub trait ParamType: Sized {
    /// The kind of parameters of this type.
    const KIND: ParamKind;
    /// Converts `raw`; a number must be inside `range`, if given.
    ///
    /// # Errors
    /// If the value is of another type or out of range.
    fn from_raw(raw: RawValue<'_>, range: Option<(f64, f64)>) -> Result<Self, SetParamError>;
    /// Returns the value as written in TOML.
    fn to_toml(&self) -> String;
}

fn invalid<T>(message: String, help: String) -> Result<T, SetParamError> {
    Err(SetParamError::Invalid { message, help })
}

fn describe(raw: RawValue<'_>) -> String {
    match raw {
        RawValue::Text(t) => format!("the string `{t}`"),
        RawValue::Float(x) => format!("the number `{x}`"),
        RawValue::Integer(n) => format!("the number `{n}`"),
        RawValue::Bool(b) => format!("`{b}`"),
    }
}

fn check_range(x: f64, range: Option<(f64, f64)>) -> Result<(), SetParamError> {
    let (lo, hi) = range.unwrap_or((0.0, f64::MAX));
    if x >= lo && x <= hi {
        return Ok(());
    }
    invalid(format!("`{x}` is out of range"), format!("give a number from {lo} to {hi}"))
}

impl ParamType for f64 {
    const KIND: ParamKind = ParamKind::Float;
    fn from_raw(raw: RawValue<'_>, range: Option<(f64, f64)>) -> Result<Self, SetParamError> {
        let x = match raw {
            RawValue::Float(x) => x,
            RawValue::Integer(n) => n as Self,
            _ => return invalid(format!("expected a number, found {}", describe(raw)), "write it bare, as 0.9".into()),
        };
        check_range(x, range).map(|()| x)
    }
    fn to_toml(&self) -> String {
        format!("{self:?}")
    }
}

impl ParamType for u32 {
    const KIND: ParamKind = ParamKind::Count;
    fn from_raw(raw: RawValue<'_>, range: Option<(f64, f64)>) -> Result<Self, SetParamError> {
        let RawValue::Integer(n) = raw else {
            return invalid(format!("expected a whole number, found {}", describe(raw)), "write it bare, as 5".into());
        };
        check_range(n as f64, range)?;
        Self::try_from(n).or_else(|_| invalid(format!("`{n}` is out of range"), format!("at most {}", Self::MAX)))
    }
    fn to_toml(&self) -> String {
        self.to_string()
    }
}

impl ParamType for bool {
    const KIND: ParamKind = ParamKind::Bool;
    fn from_raw(raw: RawValue<'_>, _: Option<(f64, f64)>) -> Result<Self, SetParamError> {
        match raw {
            RawValue::Bool(b) => Ok(b),
            _ => invalid(format!("expected true or false, found {}", describe(raw)), "write it bare, as true".into()),
        }
    }
    fn to_toml(&self) -> String {
        self.to_string()
    }
}

macro_rules! quantity_param {
    ($type:ty, $kind:ident, $what:literal, $zero:expr, $example:literal) => {
        impl ParamType for $type {
            const KIND: ParamKind = ParamKind::$kind;
            fn from_raw(raw: RawValue<'_>, _: Option<(f64, f64)>) -> Result<Self, SetParamError> {
                let RawValue::Text(text) = raw else {
                    let message = format!("expected a {} with its unit, found {}", $what, describe(raw));
                    return invalid(message, format!("write it as a string, as \"{}\"", $example));
                };
                match text.parse::<$type>() {
                    Ok(value) if value == $zero => {
                        invalid(format!("the {} `{text}` is zero", $what), format!("write it as \"{}\"", $example))
                    }
                    Ok(value) => Ok(value),
                    Err(e) => invalid(e.to_string(), e.help().to_owned()),
                }
            }
            fn to_toml(&self) -> String {
                format!("\"{self}\"")
            }
        }
    };
}
quantity_param!(Time, Time, "time", Time::ZERO, "8us");
quantity_param!(Rate, Rate, "rate", Rate::ZERO, "100Gbps");
quantity_param!(Bytes, Bytes, "size", Bytes::ZERO, "4MiB");

/// Returns the index of a scenario file's word `raw` in `words`, for the types that [`choice!`](crate::choice)
/// declares.
///
/// # Errors
/// If `raw` is not a word of `words`.
pub fn choose(raw: RawValue<'_>, words: &'static [&'static str]) -> Result<usize, SetParamError> {
    let found = match raw {
        RawValue::Text(text) => words.iter().position(|w| *w == text),
        _ => None,
    };
    found.map_or_else(
        || invalid(format!("expected one of a few words, found {}", describe(raw)), format!("write one of {words:?}")),
        Ok,
    )
}

/// Declares an enum whose variants are words in a scenario file: the type of a parameter in
/// [`algorithm_config!`](crate::algorithm_config).
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vmeta])* $variant,)+ }

        impl $crate::ParamType for $name {
            const KIND: $crate::ParamKind = $crate::ParamKind::Choice(&[$($word),+]);
            fn from_raw(
                raw: $crate::RawValue<'_>, _: Option<(f64, f64)>,
            ) -> Result<Self, $crate::SetParamError> {
                $crate::choose(raw, &[$($word),+]).map(|i| [$(Self::$variant),+][i])
            }
            fn to_toml(&self) -> String {
                match self { $(Self::$variant => format!("{:?}", $word),)+ }
            }
        }
    };
}

/// Declares an algorithm's configuration: every parameter with its meaning, its default in the paper's form, its
/// default in the ns-3 artifact's form if that differs (`ns3 =`), and its range. The comment above a parameter is its
/// documentation everywhere.
///
/// `tune = Log(LOW, HIGH)` or `tune = Linear(LOW, HIGH)` suggests a range to searches, in literals as a scenario file
/// has them. It contains the defaults of all profiles, and both ends are allowed values.
///
/// A last line `include field: OtherConfig;` adds the parameters of another algorithm, on which this algorithm is
/// built. The types of parameters are `f64`, `u32`, `bool`, `Time`, `Rate`, `Bytes` and those of
/// [`choice!`](crate::choice).
#[macro_export]
macro_rules! algorithm_config {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[doc = $doc:literal])+ $field:ident: $type:ty = $paper:expr $(, ns3 = $ns3:expr)? $(, omnet = $omnet:expr)?
            $(, in $lo:literal..=$hi:literal)? $(, tune = $scale:ident($low:literal, $high:literal))?;)*
        $(include $(#[doc = $inner_doc:literal])+ $inner:ident: $inner_type:ty;)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
            $($(#[doc = $inner_doc])+ pub $inner: $inner_type,)?
        }

        impl $name {
            /// Returns the defaults of `profile`.
            pub fn new(profile: $crate::Profile) -> Self {
                #[allow(unused_mut)]
                let mut config = Self {
                    $($field: $paper,)*
                    $($inner: <$inner_type>::new(profile),)?
                };
                if profile == $crate::Profile::Ns3 {
                    $($(config.$field = $ns3;)?)*
                }
                if profile == $crate::Profile::RoccOmnet {
                    $($(config.$field = $omnet;)?)*
                }
                config
            }
        }

        impl Default for $name {
            fn default() -> Self { Self::new($crate::Profile::Paper) }
        }

        impl $crate::Parameters for $name {
            fn params(&self) -> Vec<$crate::Param> {
                #[allow(unused_mut)]
                let mut params = vec![$($crate::Param {
                    name: stringify!($field),
                    kind: <$type as $crate::ParamType>::KIND,
                    toml: $crate::ParamType::to_toml(&self.$field),
                    doc: concat!($($doc),+).trim_ascii(),
                    tune: None$(.or(Some($crate::TuneRange {
                        low: stringify!($low), high: stringify!($high), scale: $crate::Scale::$scale,
                    })))?,
                },)*];
                $(params.extend($crate::Parameters::params(&self.$inner));)?
                params
            }
            #[allow(unused_variables)]
            fn set(&mut self, name: &str, value: $crate::RawValue<'_>) -> Result<(), $crate::SetParamError> {
                $(if name == stringify!($field) {
                    #[allow(unused_mut, unused_assignments)]
                    let mut range: Option<(f64, f64)> = None;
                    $(range = Some((f64::from($lo), f64::from($hi)));)?
                    self.$field = <$type as $crate::ParamType>::from_raw(value, range)?;
                    return Ok(());
                })*
                $(if let done @ (Ok(()) | Err($crate::SetParamError::Invalid { .. })) =
                    $crate::Parameters::set(&mut self.$inner, name, value)
                {
                    return done;
                })?
                Err($crate::SetParamError::UnknownName)
            }
        }
    };
}
pub(crate) use {algorithm_config, choice};
