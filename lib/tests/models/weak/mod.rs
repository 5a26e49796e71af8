//! A machine whose loads and stores happen out of order, as far as ARM allows it, and one that has store buffers only, as x86-64.
//!
//! There is one memory, the same for all (stores are *multi-copy atomic*). Each thread runs one of a few straight programs, one for
//! each way its branches can go; an execution in which a branch goes another way is none, and ends without being looked at. So
//! loads may run ahead of branches. An operation happens once all earlier ones of its thread have happened that it is
//! [ordered](Machine) behind; a load may take its value from an earlier store of its own thread that has not happened yet. The two
//! halves of an exchange are apart; nobody else's store comes in between. A fence of the whole process happens when every other
//! thread has done exactly the operations up to some point of its program: it is interrupted there, and what it has loaded ahead
//! is loaded again.

mod litmus;
mod machine;
mod program;
mod regions;
mod scavenger;
mod steal;

use machine::{Machine, Weak};
use program::{Kind, Order, Program, Test, Value};
