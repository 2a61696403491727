//! Rates that maximise utility, by one of several methods.

use fairrate_allocate::{
    Convergence, Gradient, KktResidual, Method, Ned, Network, Num, NumConfig, Solution, Utility, kkt_residual,
    objective as utility_of, reference, reference_memory,
};
use fairrate_scenario::{available_memory, shown_bytes};

use super::Objective;
use crate::failure::Failure;

/// Accepted alphas. Beyond them, powers of rates lose too many digits.
const ALPHAS: std::ops::RangeInclusive<f64> = 0.1..=16.0;
const GBPS: f64 = 1e9;
const ITERATIONS: u32 = 100_000;
const TOLERANCE: f64 = 1e-9;

/// Methods that find the optimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Choice {
    /// Newton-Exact-Diagonal, Flowtune's
    Ned,
    /// Gradient projection
    Gradient,
    /// The fast weighted gradient method
    Fgm,
    /// Newton steps with an estimated diagonal
    NewtonLike,
    /// An interior-point method, which proves what it finds
    Reference,
}

impl Choice {
    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ned => "ned",
            Self::Gradient => "gradient",
            Self::Fgm => "fgm",
            Self::NewtonLike => "newton-like",
            Self::Reference => "reference",
        }
    }

    const fn has_gamma(self) -> bool {
        matches!(self, Self::Ned | Self::Gradient | Self::NewtonLike)
    }
}

/// Arguments that only objectives of utility have.
#[derive(Debug, clap::Args)]
pub struct Solver {
    /// Method that finds the rates of the largest utility [default: ned]
    #[arg(long, value_enum)]
    method: Option<Choice>,
    /// Step of ned [default: 0.4], newton-like [default: 0.2] and gradient [default: what surely converges]
    #[arg(long, value_name = "X", value_parser = above_zero)]
    gamma: Option<f64>,
    /// Iterations after which a method gives up [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,
    /// Largest distance from the optimum at which a method may stop [default: 1e-9]
    #[arg(long, value_name = "X", value_parser = above_zero)]
    tolerance: Option<f64>,
}

fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|x: &f64| x.is_finite() && 0.0 < *x);
    number.ok_or_else(|| "write a number above 0, such as 0.4".to_owned())
}

/// Reads `--objective`.
pub fn objective(text: &str) -> Result<Objective, String> {
    let alpha = |number: &str| number.parse().ok().filter(|alpha| ALPHAS.contains(alpha));
    match text.split_once('=') {
        None if text == "max-min" => Ok(Objective::MaxMin),
        None if text == "proportional" => Ok(Objective::AlphaFair(1.0)),
        Some(("alpha", number)) => alpha(number).map(Objective::AlphaFair).ok_or_else(|| {
            format!("write alpha=A with A from {} to {}, such as alpha=2", ALPHAS.start(), ALPHAS.end())
        }),
        _ => Err("objectives are max-min, proportional and alpha=A, such as alpha=2".to_owned()),
    }
}

impl Solver {
    fn choice(&self) -> Choice {
        self.method.unwrap_or(Choice::Ned)
    }

    /// Returns an error for arguments that would have no effect.
    pub fn check(&self, objective: Objective) -> Result<(), Failure> {
        let iterates = self.gamma.is_some() || self.iterations.is_some() || self.tolerance.is_some();
        let usage = |message: String, help: &str| Err(Failure::Usage { message, help: help.to_owned() });
        if objective == Objective::MaxMin && (self.method.is_some() || iterates) {
            let help = "leave it out: max-min rates are exact, without iterations";
            return usage("`--objective max-min` takes no method and no step".to_owned(), help);
        }
        if self.choice() == Choice::Reference && iterates {
            let help = "leave it out: the reference always goes to the last digits";
            return usage("`--method reference` takes no step, no iterations and no tolerance".to_owned(), help);
        }
        if self.gamma.is_some() && !self.choice().has_gamma() {
            let help = "leave `--gamma` out, or take ned, gradient or newton-like";
            return usage(format!("`--method {}` has no step", self.choice().name()), help);
        }
        Ok(())
    }
}

/// Rates of the largest utility, with information on their quality.
pub struct Optimum {
    /// Name of the method.
    pub method: &'static str,
    /// The method that was asked for, if it gave up, and its state then.
    pub gave_up: Option<(&'static str, Convergence)>,
    /// Alpha of the utilities.
    pub alpha: f64,
    /// Rates and prices.
    pub solution: Solution,
    /// The sum of utilities, with rates in Gb/s.
    pub utility: f64,
    /// Iterations and residual of an iterative method; `None` for the reference.
    pub convergence: Option<Convergence>,
    /// Residuals of the optimality conditions.
    pub kkt: KktResidual,
}

impl Optimum {
    /// Computes the rates. If Newton-Exact-Diagonal gives up with the default number of iterations, as it may if links
    /// are redundant, the rates are those of the reference.
    pub fn find(network: &Network, alpha: f64, args: &Solver) -> Result<Self, Failure> {
        let choice = args.choice();
        let found = Self::by(choice, network, alpha, args)?;
        if choice != Choice::Ned || args.iterations.is_some() || found.failure(args).is_none() {
            return Ok(found);
        }
        match Self::by(Choice::Reference, network, alpha, args) {
            Ok(optimum) => Ok(Self { gave_up: found.convergence.map(|c| (found.method, c)), ..optimum }),
            // The failure of the first method is reported, and its rates are better than none.
            Err(_) => Ok(found),
        }
    }

    fn by(choice: Choice, network: &Network, alpha: f64, args: &Solver) -> Result<Self, Failure> {
        let utilities: Vec<Utility> =
            network.flows.iter().map(|flow| Utility::alpha_fair(flow.weight, alpha)).collect();
        let used =
            network.flows.iter().flat_map(|flow| &flow.links).map(|link| network.links[link.index()].capacity_bps);
        let unit_bps = used.fold(f64::INFINITY, f64::min);
        let unit_bps = if unit_bps.is_finite() { unit_bps } else { GBPS };
        let (solution, convergence) = if choice == Choice::Reference {
            check_memory(network)?;
            let found =
                reference(network, &utilities, unit_bps).map_err(|e| Failure::NoOptimum { cause: e.to_string() })?;
            (found.0, None)
        } else {
            let mut num = allocator(network, &utilities, args, unit_bps);
            let limit = args.iterations.unwrap_or(ITERATIONS);
            let convergence = num.solve(limit, args.tolerance.unwrap_or(TOLERANCE));
            (num.solution(), Some(convergence))
        };
        let kkt =
            kkt_residual(network, &utilities, &solution).expect("the readers take nothing that has no allocation");
        let in_gbps = Solution { unit_bps: GBPS, rates_bps: solution.rates_bps.clone(), prices: Vec::new() };
        let utility = utility_of(&utilities, &in_gbps);
        Ok(Self { method: choice.name(), gave_up: None, alpha, solution, utility, convergence, kkt })
    }

    /// Returns a note if another method than the one asked for found the rates.
    pub fn note(&self) -> Option<String> {
        let (method, Convergence { iterations, residual, .. }) = self.gave_up?;
        let gave_up = format!("{method} is {residual:.1e} from the optimum after {iterations} iterations");
        Some(format!("{gave_up}; these rates are those of --method {}", self.method))
    }

    /// Returns the prices in utility per Gb/s.
    pub fn prices_per_gbps(&self) -> impl Iterator<Item = f64> {
        // The ratio of U'(x) = w x^-A in two units is the same for all x.
        let unit = Utility::alpha_fair(1.0, self.alpha).derivative(self.solution.unit_bps / GBPS);
        self.solution.prices.iter().map(move |price| price * unit)
    }

    /// Returns the reason why the rates are not the optimum, if the method gave up.
    pub fn failure(&self, args: &Solver) -> Option<Failure> {
        let Convergence { iterations, residual, .. } = self.convergence.filter(|c| !c.converged)?;
        let more = "give it more `--iterations` or more `--tolerance`, or take `--method reference`";
        let help = match args.choice() {
            _ if args.iterations.is_some() => more,
            Choice::Ned if args.gamma.is_none_or(|gamma| 0.1 < gamma) => {
                "smaller steps converge on longer paths: try `--gamma 0.1`; or `--method reference`"
            }
            Choice::Gradient if args.gamma.is_some() => "leave `--gamma` out for a step that surely converges",
            _ => more,
        };
        Some(Failure::NotConverged { method: self.method, iterations, residual, help: help.to_owned() })
    }
}

/// Returns an error if there is too little memory for the reference.
fn check_memory(network: &Network) -> Result<(), Failure> {
    let needed = reference_memory(network);
    match available_memory() {
        Some(available) if available < needed => Err(Failure::Memory {
            what: "`--method reference`".to_owned(),
            needed: shown_bytes(needed),
            available: shown_bytes(available),
            help: "take `--method ned`, which needs little more than the files".to_owned(),
        }),
        _ => Ok(()),
    }
}

fn allocator(network: &Network, utilities: &[Utility], args: &Solver, unit_bps: f64) -> Num {
    let with = |method| {
        let config = NumConfig { method, ..NumConfig::flowtune(unit_bps) };
        Num::of_network(network, utilities, config).expect("the readers take nothing that has no allocation")
    };
    match args.choice() {
        Choice::Gradient => {
            let gamma = args.gamma.unwrap_or_else(|| with(Method::Gradient(Gradient { gamma: 1.0 })).safe_step());
            with(Method::Gradient(Gradient { gamma }))
        }
        Choice::Fgm => with(Method::Fgm),
        Choice::NewtonLike => with(Method::NewtonLike { gamma: args.gamma.unwrap_or(0.2), window: 5 }),
        Choice::Ned | Choice::Reference => {
            with(Method::Ned(args.gamma.map_or_else(Ned::default, |gamma| Ned { gamma })))
        }
    }
}
