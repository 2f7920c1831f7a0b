//! Names of kernel functions, from `/proc/kallsyms`.

/// Functions by address.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    /// Ascending.
    functions: Vec<(u64, String)>,
}

impl Symbols {
    /// Reads `/proc/kallsyms`. Where the kernel hides addresses (they are 0) there are none.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut functions: Vec<(u64, String)> = text.lines().filter_map(function).collect();
        functions.sort_by_key(|(address, _)| *address);
        Self { functions }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function in which an address lies, or the address.
    #[must_use]
    pub fn name(&self, address: u64) -> String {
        let after = self.functions.partition_point(|(start, _)| *start <= address);
        match after.checked_sub(1).map(|at| &self.functions[at]) {
            Some((_, name)) => name.clone(),
            None => format!("{address:#x}"),
        }
    }
}

/// `ffffffff81000000 T name [module]`
fn function(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
    if !matches!(words.next()?, "t" | "T" | "w" | "W") {
        return None;
    }
    // For readers, the parts into which the compiler splits a function are that function.
    let name = words.next()?;
    Some((address, name.split(".constprop").next()?.split(".isra").next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::Symbols;

    #[test]
    fn an_address_within_a_function() {
        let text = "ffff20 t inner.isra.0\nffff10 T outer\nffff15 d data\n0000 T hidden\nbad\n";
        let symbols = Symbols::parse(text);
        assert_eq!(symbols.name(0xffff17), "outer");
        assert_eq!(symbols.name(0xffff20), "inner");
        assert_eq!(symbols.name(0x5), "0x5");
        assert!(Symbols::parse("0000 T hidden").is_empty());
    }
}
