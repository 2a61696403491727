//! A message at its sender: the bytes that may be sent, their class, and the bytes to send again.

use super::levels::Levels;
use crate::ids::FlowId;
use crate::transport::Writing;
use crate::transport::ranges::Ranges;
use crate::transport::sender::Sender;

/// HOMA's state of a sender besides [`Sender`], whose `bytes` are those that may be sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Outgoing {
    /// Bytes of the message that are written so far; `u64::MAX` if it is endless.
    pub(super) length: u64,
    /// Bytes that may be sent: the unscheduled ones, and those that the receiver has granted.
    granted: u64,
    /// Bytes that are sent without a grant.
    unscheduled: u64,
    /// The class of unscheduled packets, and of scheduled ones.
    classes: [u8; 2],
    /// Ranges that the receiver has asked for again and that are not being sent yet.
    again: Ranges,
}

impl Outgoing {
    /// Returns a message of which nothing has been written.
    pub(super) fn new(unscheduled: u64, unscheduled_class: u8, scheduled_class: u8) -> Self {
        let classes = [unscheduled_class, scheduled_class];
        Self { length: 0, granted: unscheduled, unscheduled, classes, again: Ranges::default() }
    }

    /// Records `bytes` more bytes that the application has written.
    pub(super) fn write(&mut self, bytes: u64) {
        self.length = self.length.saturating_add(bytes);
    }

    /// Returns the length that the receiver may take for the message's end: `u64::MAX` while the application may write
    /// more.
    pub(super) fn final_length(&self, sender: &Sender) -> u64 {
        if sender.writing == Writing::Done { self.length } else { u64::MAX }
    }

    /// Returns the bytes that may be sent.
    pub(super) fn limit(&self) -> u64 {
        self.granted.min(self.length)
    }

    /// Lets the bytes before `until` be sent, scheduled ones in `class`. An earlier grant is never reduced.
    pub(super) fn grant(&mut self, until: u64, class: u8) {
        self.granted = self.granted.max(until);
        self.classes[1] = class;
    }

    /// Records that the receiver asks for `[from, to)` again.
    pub(super) fn ask_again(&mut self, from: u64, to: u64) {
        if from < to {
            self.again.insert(from, to);
        }
    }

    /// Gives the sender the next range to send again, once the one before is sent.
    pub(super) fn feed(&mut self, sender: &mut Sender) {
        if sender.next_again().is_some() {
            return;
        }
        sender.send_again(0, 0);
        while let Some((from, to)) = self.again.pop() {
            if sender.snd_una < to {
                sender.send_again(from.max(sender.snd_una), to);
                return;
            }
        }
    }

    /// Returns the class of the packet that the sender sends next.
    pub(super) fn class(&self, sender: &Sender, levels: &Levels) -> u8 {
        let next = sender.next_again().unwrap_or(sender.snd_nxt);
        let left = if self.length == u64::MAX { u64::MAX } else { self.length.saturating_sub(next) };
        let [unscheduled, scheduled] = self.classes;
        if self.is_unscheduled(next) {
            levels.unscheduled(unscheduled, left)
        } else {
            levels.granted_in(scheduled, left)
        }
    }

    /// Returns the largest payload of the packet that the sender sends next, and its bytes besides the payload, of
    /// which an unscheduled packet has `header`.
    pub(super) fn frame(&self, sender: &Sender, levels: &Levels, header: u64) -> (u64, u64) {
        let next = sender.next_again().unwrap_or(sender.snd_nxt);
        if self.is_unscheduled(next) {
            (levels.mtu().min(self.unscheduled - next), header)
        } else {
            (levels.scheduled_payload(), levels.scheduled_header())
        }
    }

    /// Returns `true` if the byte at `position` is sent without a grant.
    fn is_unscheduled(&self, position: u64) -> bool {
        position < self.unscheduled
    }

    /// Returns the sort key of the message: the one with the fewest bytes left to send is first.
    pub(super) fn order(&self, sender: &Sender) -> (u64, FlowId) {
        let left = if self.length == u64::MAX { u64::MAX } else { self.length.saturating_sub(sender.snd_nxt) };
        (left, sender.flow)
    }
}
