//! A message at its sender: how much of it may be sent, in which class, and what must be sent again.

use crate::ids::FlowId;
use crate::transport::ranges::Ranges;
use crate::transport::sender::Sender;

/// What HOMA keeps of a sender besides [`Sender`], whose `bytes` are those that may be sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Outgoing {
    /// Bytes of the message, as far as they are written; `u64::MAX`: without end.
    pub(super) length: u64,
    /// Bytes that may be sent: the unscheduled ones, and what the receiver has granted.
    granted: u64,
    /// Bytes that are sent unasked.
    unscheduled: u64,
    /// The class of unscheduled packets, and of scheduled ones.
    classes: [u8; 2],
    /// What the receiver has asked for again and is not being sent yet.
    again: Ranges,
}

impl Outgoing {
    /// A message of which nothing has been written.
    pub(super) fn new(unscheduled: u64, unscheduled_class: u8, scheduled_class: u8) -> Self {
        let classes = [unscheduled_class, scheduled_class];
        Self { length: 0, granted: unscheduled, unscheduled, classes, again: Ranges::default() }
    }

    /// The application has written so many bytes more.
    pub(super) fn write(&mut self, bytes: u64) {
        self.length = self.length.saturating_add(bytes);
    }

    /// Bytes that may be sent.
    pub(super) fn limit(&self) -> u64 {
        self.granted.min(self.length)
    }

    /// The receiver lets it send what comes before a byte, in a class. What it has granted before it does not take back.
    pub(super) fn grant(&mut self, until: u64, class: u8) {
        self.granted = self.granted.max(until);
        self.classes[1] = class;
    }

    /// The receiver asks for `[from, to)` again.
    pub(super) fn ask_again(&mut self, from: u64, to: u64) {
        if from < to {
            self.again.insert(from, to);
        }
    }

    /// Gives the sender what is to be sent again, once the last of that is sent.
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

    /// The class of the packet that the sender sends next.
    pub(super) fn class(&self, sender: &Sender) -> u8 {
        let next = sender.next_again().unwrap_or(sender.snd_nxt);
        self.classes[usize::from(self.unscheduled <= next)]
    }

    /// Whose turn comes first: the message with the fewest bytes left to send.
    pub(super) fn order(&self, sender: &Sender) -> (u64, FlowId) {
        let left = if self.length == u64::MAX { u64::MAX } else { self.length.saturating_sub(sender.snd_nxt) };
        (left, sender.flow)
    }
}
