//! Straight programs of loads and stores.

/// A register or a number. What is computed from a register depends on the load that fills it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Number(i8),
    /// What this operation has loaded into this register, plus a number.
    Loaded(u8, u8, i8),
}

impl Value {
    pub(super) fn plus(self, more: i8) -> Value {
        match self {
            Value::Number(number) => Value::Number(number + more),
            Value::Loaded(by, register, number) => Value::Loaded(by, register, number + more),
        }
    }

    /// The operations it depends on.
    pub(super) fn needs(self) -> u64 {
        match self {
            Value::Number(_) => 0,
            Value::Loaded(by, ..) => 1 << by,
        }
    }

    pub(super) fn of(self, registers: &[i8]) -> i8 {
        match self {
            Value::Number(number) => number,
            Value::Loaded(_, register, number) => registers[register as usize] + number,
        }
    }
}

/// As in the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

impl Order {
    pub(super) fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel | Order::SeqCst)
    }

    pub(super) fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::SeqCst)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Load,
    Store,
    /// Goes this way only if the value is what the test says.
    Branch(Test),
    Fence,
    /// A fence in every thread of the process.
    FenceAll,
    /// Go to sleep if the word at `at` has the value; the next operation is `Woken`.
    Wait,
    Woken,
    /// Wake who sleeps.
    Wake,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Test {
    Is,
    Not,
    Below,
    /// At least.
    From,
}

impl Test {
    pub(super) fn holds(self, left: i8, right: i8) -> bool {
        match self {
            Test::Is => left == right,
            Test::Not => left != right,
            Test::Below => left < right,
            Test::From => left >= right,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) order: Order,
    /// The place in memory; of a branch the left side.
    pub(super) at: Value,
    /// What is stored, or the register that is loaded; of a branch the right side.
    pub(super) value: Value,
    /// One half of an exchange. Its load is the operation before its store.
    pub(super) exchange: bool,
}

/// One way through the code of a thread.
#[derive(Clone, Default)]
pub(super) struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) loads: u8,
    /// What this thread has in the end.
    pub(super) has: Vec<Value>,
}

impl Program {
    fn push(&mut self, name: &'static str, kind: Kind, order: Order, at: Value, value: Value) {
        self.ops.push(Op { name, kind, order, at, value, exchange: false });
    }

    pub(super) fn load(&mut self, name: &'static str, at: i8, order: Order) -> Value {
        self.load_at(name, Value::Number(at), order)
    }

    pub(super) fn load_at(&mut self, name: &'static str, at: Value, order: Order) -> Value {
        let into = Value::Loaded(self.ops.len() as u8, self.loads, 0);
        self.loads += 1;
        self.push(name, Kind::Load, order, at, into);
        into
    }

    pub(super) fn store(&mut self, name: &'static str, at: i8, value: Value, order: Order) {
        self.push(name, Kind::Store, order, Value::Number(at), value);
    }

    /// What follows is done only if this is so.
    pub(super) fn only_if(&mut self, left: Value, test: Test, right: Value) {
        self.push("branch", Kind::Branch(test), Order::Relaxed, left, right);
    }

    pub(super) fn only_if_is(&mut self, left: Value, right: i8) {
        self.only_if(left, Test::Is, Value::Number(right));
    }

    /// An exchange, or a compare-and-exchange that succeeds if the value is tested afterwards. Returns the old value.
    pub(super) fn exchange(&mut self, name: &'static str, at: i8, value: i8, order: Order) -> Value {
        let old = self.load(name, at, if order.acquires() { Order::Acquire } else { Order::Relaxed });
        let order = if order.releases() { Order::Release } else { Order::Relaxed };
        self.store(name, at, Value::Number(value), order);
        let end = self.ops.len();
        self.ops[end - 2..].iter_mut().for_each(|op| op.exchange = true);
        old
    }

    pub(super) fn lock(&mut self, at: i8, order: Order) {
        let old = self.exchange("lock", at, 1, order);
        self.only_if_is(old, 0);
    }

    pub(super) fn unlock(&mut self, at: i8, order: Order) {
        self.store("unlock", at, Value::Number(0), order);
    }

    pub(super) fn special(&mut self, name: &'static str, kind: Kind) {
        self.push(name, kind, Order::SeqCst, Value::Number(0), Value::Number(0));
    }

    /// Sleep as long as the word has this value and nobody wakes us.
    pub(super) fn wait(&mut self, at: i8, value: i8) {
        self.push("wait", Kind::Wait, Order::SeqCst, Value::Number(at), Value::Number(value));
        self.special("woken", Kind::Woken);
    }
}
