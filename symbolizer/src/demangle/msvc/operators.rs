//! Names that are not written as they are: operators, and what compilers make.

use super::Reader;

/// Stands for the type a conversion converts to until that has been read.
pub(super) const CONVERSION: &str = "\u{1}";

/// What a name is besides its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    /// The text is all.
    None,
    /// It is called as the class.
    Constructor,
    /// It is called as the class, with `~`.
    Destructor,
    /// [`CONVERSION`] is in the text.
    Conversion,
}

const ONE: [(char, &str); 33] = [
    ('2', "operator new"),
    ('3', "operator delete"),
    ('4', "operator="),
    ('5', "operator>>"),
    ('6', "operator<<"),
    ('7', "operator!"),
    ('8', "operator=="),
    ('9', "operator!="),
    ('A', "operator[]"),
    ('C', "operator->"),
    ('D', "operator*"),
    ('E', "operator++"),
    ('F', "operator--"),
    ('G', "operator-"),
    ('H', "operator+"),
    ('I', "operator&"),
    ('J', "operator->*"),
    ('K', "operator/"),
    ('L', "operator%"),
    ('M', "operator<"),
    ('N', "operator<="),
    ('O', "operator>"),
    ('P', "operator>="),
    ('Q', "operator,"),
    ('R', "operator()"),
    ('S', "operator~"),
    ('T', "operator^"),
    ('U', "operator|"),
    ('V', "operator&&"),
    ('W', "operator||"),
    ('X', "operator*="),
    ('Y', "operator+="),
    ('Z', "operator-="),
];

/// After `_`.
const TWO: [(char, &str); 28] = [
    ('0', "operator/="),
    ('1', "operator%="),
    ('2', "operator>>="),
    ('3', "operator<<="),
    ('4', "operator&="),
    ('5', "operator|="),
    ('6', "operator^="),
    ('7', "`vftable'"),
    ('8', "`vbtable'"),
    ('9', "`vcall'"),
    ('A', "`typeof'"),
    ('D', "`vbase dtor'"),
    ('E', "`vector deleting dtor'"),
    ('F', "`default ctor closure'"),
    ('G', "`scalar deleting dtor'"),
    ('H', "`vector ctor iterator'"),
    ('I', "`vector dtor iterator'"),
    ('J', "`vector vbase ctor iterator'"),
    ('K', "`virtual displacement map'"),
    ('L', "`eh vector ctor iterator'"),
    ('M', "`eh vector dtor iterator'"),
    ('N', "`eh vector vbase ctor iterator'"),
    ('O', "`copy ctor closure'"),
    ('S', "`local vftable'"),
    ('U', "operator new[]"),
    ('V', "operator delete[]"),
    ('X', "`placement delete closure'"),
    ('Y', "`placement delete[] closure'"),
];

/// After `__`.
const THREE: [(char, &str); 5] = [
    ('A', "`managed vector ctor iterator'"),
    ('B', "`managed vector dtor iterator'"),
    ('L', "operator co_await"),
    ('M', "operator<=>"),
    ('D', "`managed vector copy ctor iterator'"),
];

impl Reader<'_> {
    /// The name of an operator, after its `?`.
    pub(super) fn operator(&mut self) -> Option<(String, Special)> {
        let find = |table: &[(char, &str)], code: char| {
            let found = table.iter().find(|(known, _)| *known == code);
            found.map(|(_, name)| ((*name).to_owned(), Special::None))
        };
        if self.eat("__K") {
            let name = self.written_name()?;
            return Some((format!("operator \"\"{name}"), Special::None));
        }
        if self.eat("__") {
            return find(&THREE, self.next()?);
        }
        if self.eat("_") {
            return find(&TWO, self.next()?);
        }
        match self.next()? {
            '0' => Some((String::new(), Special::Constructor)),
            '1' => Some((String::new(), Special::Destructor)),
            'B' => Some((format!("operator {CONVERSION}"), Special::Conversion)),
            code => find(&ONE, code),
        }
    }
}
