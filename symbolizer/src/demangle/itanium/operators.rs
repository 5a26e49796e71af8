//! Operators by the two letters that stand for them, as the Itanium C++ ABI lists them (section 5.1.3 and 5.1.6).

/// How an operator is used in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One operand, behind the sign.
    Prefix,
    /// One operand: before the sign, but behind it if the letters are followed by `_`.
    Step,
    Infix,
    /// `a.b`, `a->b`
    Member,
    /// `a[b]`
    Subscript,
    /// `a ? b : c`
    Conditional,
    /// `a(b…)`
    Call,
    /// `static_cast<type>(x)`
    NamedCast,
    /// One operand in parentheses: `sizeof (x)`.
    OfExpression,
    /// The same, of a type.
    OfType,
    New,
    Delete,
}

/// An operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operator {
    pub(super) code: [u8; 2],
    /// As it is written, in expressions and behind the word `operator`.
    pub(super) sign: &'static str,
    pub(super) form: Form,
}

const fn operator(code: &[u8; 2], sign: &'static str, form: Form) -> Operator {
    Operator { code: *code, sign, form }
}

/// All operators, in the order of their letters.
pub(super) const OPERATORS: [Operator; 65] = [
    operator(b"aN", "&=", Form::Infix),
    operator(b"aS", "=", Form::Infix),
    operator(b"aa", "&&", Form::Infix),
    operator(b"ad", "&", Form::Prefix),
    operator(b"an", "&", Form::Infix),
    operator(b"at", "alignof ", Form::OfType),
    operator(b"aw", "co_await ", Form::Prefix),
    operator(b"az", "alignof ", Form::OfExpression),
    operator(b"cc", "const_cast", Form::NamedCast),
    operator(b"cl", "()", Form::Call),
    operator(b"cm", ",", Form::Infix),
    operator(b"co", "~", Form::Prefix),
    operator(b"dV", "/=", Form::Infix),
    operator(b"da", "delete[] ", Form::Delete),
    operator(b"dc", "dynamic_cast", Form::NamedCast),
    operator(b"de", "*", Form::Prefix),
    operator(b"dl", "delete ", Form::Delete),
    operator(b"ds", ".*", Form::Infix),
    operator(b"dt", ".", Form::Member),
    operator(b"dv", "/", Form::Infix),
    operator(b"eO", "^=", Form::Infix),
    operator(b"eo", "^", Form::Infix),
    operator(b"eq", "==", Form::Infix),
    operator(b"ge", ">=", Form::Infix),
    operator(b"gt", ">", Form::Infix),
    operator(b"ix", "[]", Form::Subscript),
    operator(b"lS", "<<=", Form::Infix),
    operator(b"le", "<=", Form::Infix),
    operator(b"ls", "<<", Form::Infix),
    operator(b"lt", "<", Form::Infix),
    operator(b"mI", "-=", Form::Infix),
    operator(b"mL", "*=", Form::Infix),
    operator(b"mi", "-", Form::Infix),
    operator(b"ml", "*", Form::Infix),
    operator(b"mm", "--", Form::Step),
    operator(b"na", "new[]", Form::New),
    operator(b"ne", "!=", Form::Infix),
    operator(b"ng", "-", Form::Prefix),
    operator(b"nt", "!", Form::Prefix),
    operator(b"nw", "new", Form::New),
    operator(b"nx", "noexcept", Form::OfExpression),
    operator(b"oR", "|=", Form::Infix),
    operator(b"oo", "||", Form::Infix),
    operator(b"or", "|", Form::Infix),
    operator(b"pL", "+=", Form::Infix),
    operator(b"pl", "+", Form::Infix),
    operator(b"pm", "->*", Form::Infix),
    operator(b"pp", "++", Form::Step),
    operator(b"ps", "+", Form::Prefix),
    operator(b"pt", "->", Form::Member),
    operator(b"qu", "?", Form::Conditional),
    operator(b"rM", "%=", Form::Infix),
    operator(b"rS", ">>=", Form::Infix),
    operator(b"rc", "reinterpret_cast", Form::NamedCast),
    operator(b"rm", "%", Form::Infix),
    operator(b"rs", ">>", Form::Infix),
    operator(b"sP", "sizeof...", Form::OfExpression),
    operator(b"sZ", "sizeof...", Form::OfExpression),
    operator(b"sc", "static_cast", Form::NamedCast),
    operator(b"ss", "<=>", Form::Infix),
    operator(b"st", "sizeof ", Form::OfType),
    operator(b"sz", "sizeof ", Form::OfExpression),
    operator(b"te", "typeid ", Form::OfExpression),
    operator(b"ti", "typeid ", Form::OfType),
    operator(b"tw", "throw ", Form::Prefix),
];

/// The operator that two letters stand for, by its place in [`OPERATORS`].
pub(super) fn find(code: &[u8]) -> Option<u8> {
    let index = OPERATORS.binary_search_by(|operator| operator.code[..].cmp(code)).ok()?;
    u8::try_from(index).ok()
}

/// The operator at a place in the table.
pub(super) fn get(index: u8) -> Operator {
    OPERATORS[usize::from(index) % OPERATORS.len()]
}

#[cfg(test)]
mod tests {
    use super::OPERATORS;

    #[test]
    fn operators_are_in_order() {
        assert!(OPERATORS.is_sorted_by(|a, b| a.code < b.code));
    }
}
