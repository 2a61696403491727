//! Connections of an algorithm that is removed from the kernel: they take the default of their namespace.
//!
//! Without its ports and options an algorithm gets no new information, and its connections would keep their last
//! window.

use std::io::Read as _;

use libbpf_rs::{Iter, MapCore, MapFlags, Object};

use super::directory::Directory;
use super::mark_in;
use super::netns::Namespace;
use super::{netns, object};
use crate::error::Error;
use crate::setup::Algorithm;

/// Size of the name of a congestion control.
const NAME: usize = 16;

/// The program that iterates over the sockets of a namespace.
pub(super) struct Mover(Object);

impl Mover {
    /// Loads the program.
    ///
    /// # Errors
    /// If the kernel has no iterators over sockets, which it has from 5.15 on.
    pub fn new() -> Result<Self, Error> {
        object::load(object::MOVER, "").map(Self)
    }

    /// Switches all sockets of an algorithm, with its pins in `dir`, to the default of their namespace, in all
    /// namespaces that have a name or a process.
    pub fn move_all(&self, algorithm: Algorithm, dir: &Directory) -> Result<(), Error> {
        netns::each(|namespace| self.move_in(algorithm, namespace, mark_in(dir, namespace.cookie())?))
    }

    fn move_in(&self, algorithm: Algorithm, namespace: &Namespace, tos: u32) -> Result<(), Error> {
        let to = namespace.default()?;
        let failed = |e: libbpf_rs::Error| Error::system("move connections", e);
        let map = self.0.maps().find(|map| map.name() == "moves");
        let program = self.0.progs_mut().next();
        let (Some(map), Some(program)) = (map, program) else { return Ok(()) };
        let asked = [&name(algorithm.tcp_name)[..], &name(&to), &tos.to_ne_bytes()].concat();
        map.update(&0_u32.to_ne_bytes(), &asked, MapFlags::ANY).map_err(failed)?;
        let link = program.attach().map_err(failed)?;
        // The iterator covers the sockets of the namespace in which it is created.
        namespace.inside(|| {
            let mut sockets = Iter::new(&link).map_err(std::io::Error::other)?;
            sockets.read_to_end(&mut Vec::new()).map(drop)
        })
    }
}

fn name(of: &str) -> [u8; NAME] {
    let mut name = [0; NAME];
    let n = of.len().min(NAME - 1);
    name[..n].copy_from_slice(&of.as_bytes()[..n]);
    name
}
