//! Merges several wasm modules.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail};
use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{
    CodeSection, DataCountSection, DataSection, ElementSection, EntityType, FunctionSection, ImportSection, Module,
    TypeSection,
};
use wasmparser::{Parser, Payload, TypeRef};

/// Merges modules in order. Imports may be globals, tables and memories, which are merged by name.
/// Modules may define types, functions, elements and data. Other content is an error.
pub(super) fn merged(modules: &[&[u8]]) -> Result<Vec<u8>> {
    let mut state = MergeState::default();
    for module in modules {
        state.take(module)?;
    }
    let mut out = Module::new();
    out.section(&state.types).section(&state.imports).section(&state.functions).section(&state.elements);
    if !state.data.is_empty() {
        out.section(&DataCountSection { count: state.data.len() });
    }
    out.section(&state.code).section(&state.data);
    Ok(out.finish())
}

/// Merge state, and index maps for the current module.
#[derive(Default)]
struct MergeState {
    types: TypeSection,
    imports: ImportSection,
    functions: FunctionSection,
    elements: ElementSection,
    code: CodeSection,
    data: DataSection,
    /// Index by kind and name.
    imported: BTreeMap<(Kind, String), u32>,
    /// Imports of the current module: index by kind.
    here: BTreeMap<Kind, Vec<u32>>,
    first_type: u32,
    first_function: u32,
    first_element: u32,
    first_data: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Global,
    Table,
    Memory,
}

impl MergeState {
    fn take(&mut self, module: &[u8]) -> Result<()> {
        self.first_type = self.types.len();
        self.first_function = self.functions.len();
        self.first_element = self.elements.len();
        self.first_data = self.data.len();
        self.here.clear();
        // Sections are read here because the encoder is `self`.
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::TypeSection(reader) => {
                    let mut types = std::mem::take(&mut self.types);
                    flatten_error(self.parse_type_section(&mut types, reader))?;
                    self.types = types;
                }
                Payload::ImportSection(reader) => {
                    for import in reader.into_imports() {
                        let import = import?;
                        self.import(import.module, import.name, import.ty)?;
                    }
                }
                Payload::FunctionSection(reader) => {
                    let mut functions = std::mem::take(&mut self.functions);
                    flatten_error(self.parse_function_section(&mut functions, reader))?;
                    self.functions = functions;
                }
                Payload::ElementSection(reader) => {
                    let mut elements = std::mem::take(&mut self.elements);
                    flatten_error(self.parse_element_section(&mut elements, reader))?;
                    self.elements = elements;
                }
                Payload::DataSection(reader) => {
                    let mut data = std::mem::take(&mut self.data);
                    flatten_error(self.parse_data_section(&mut data, reader))?;
                    self.data = data;
                }
                Payload::CodeSectionEntry(body) => {
                    let mut code = std::mem::take(&mut self.code);
                    flatten_error(self.parse_function_body(&mut code, body))?;
                    self.code = code;
                }
                Payload::ExportSection(reader) if reader.count() == 0 => {}
                Payload::Version { .. }
                | Payload::CustomSection(_)
                | Payload::DataCountSection { .. }
                | Payload::CodeSectionStart { .. }
                | Payload::End(_) => {}
                other => bail!("a part has something that is not merged: {other:?}"),
            }
        }
        Ok(())
    }

    fn import(&mut self, module: &str, name: &str, import_type: TypeRef) -> Result<()> {
        let kind = match import_type {
            TypeRef::Global(_) => Kind::Global,
            TypeRef::Table(_) => Kind::Table,
            TypeRef::Memory(_) => Kind::Memory,
            _ => bail!("a part imports {module}.{name}, which is neither global, table nor memory"),
        };
        let next = u32::try_from(self.imported.keys().filter(|(known, _)| *known == kind).count())?;
        let index = *self.imported.entry((kind, format!("{module}.{name}"))).or_insert(next);
        if index == next {
            let entity: EntityType = flatten_error(self.entity_type(import_type))?;
            self.imports.import(module, name, entity);
        }
        self.here.entry(kind).or_default().push(index);
        Ok(())
    }

    fn imported(&self, kind: Kind, index: u32) -> Result<u32, Error<anyhow::Error>> {
        let found = self.here.get(&kind).and_then(|indices| indices.get(index as usize));
        found.copied().ok_or_else(|| Error::UserError(anyhow!("a part has a {kind:?} of its own")))
    }
}

impl Reencode for MergeState {
    type Error = anyhow::Error;

    fn type_index(&mut self, index: u32) -> Result<u32, Error<anyhow::Error>> {
        Ok(self.first_type + index)
    }

    fn function_index(&mut self, index: u32) -> Result<u32, Error<anyhow::Error>> {
        Ok(self.first_function + index)
    }

    fn element_index(&mut self, index: u32) -> Result<u32, Error<anyhow::Error>> {
        Ok(self.first_element + index)
    }

    fn data_index(&mut self, index: u32) -> Result<u32, Error<anyhow::Error>> {
        Ok(self.first_data + index)
    }

    fn global_index(&mut self, index: u32) -> Result<u32, Error<anyhow::Error>> {
        self.imported(Kind::Global, index)
    }

    fn table_index(&mut self, index: u32) -> Result<u32, Error<anyhow::Error>> {
        self.imported(Kind::Table, index)
    }

    fn memory_index(&mut self, index: u32) -> Result<u32, Error<anyhow::Error>> {
        self.imported(Kind::Memory, index)
    }
}

fn flatten_error<T>(result: Result<T, Error<anyhow::Error>>) -> Result<T> {
    result.map_err(|error| anyhow!("{error}"))
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{
        ConstExpr, Elements, Function, GlobalType, Instruction, MemoryType, RefType, TableType, ValType,
    };
    use wasmparser::Validator;

    use super::*;

    /// Builds a module with a function at index `place` in the table. The function stores a number
    /// through the stack pointer. `first` determines the import order.
    fn part(number: i32, index: i32, first: Kind) -> Vec<u8> {
        let mut types = TypeSection::new();
        types.ty().function([ValType::F64], []);
        types.ty().function([], [ValType::I32]);
        let table =
            TableType { element_type: RefType::FUNCREF, table64: false, minimum: 9, maximum: None, shared: false };
        let memory = MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None };
        let stack = |mutable| GlobalType { val_type: ValType::I32, mutable, shared: false };
        let mut imports = ImportSection::new();
        if first == Kind::Global {
            imports.import("m", "stack", stack(true));
        }
        imports.import("m", "table", table).import("m", "memory", memory);
        if first != Kind::Global {
            imports.import("m", "other", stack(false)).import("m", "stack", stack(true));
        }
        let global = u32::from(first != Kind::Global);
        let mut functions = FunctionSection::new();
        functions.function(1).function(1);
        let mut elements = ElementSection::new();
        elements.active(Some(0), &ConstExpr::i32_const(index), Elements::Functions([1].as_slice().into()));
        let mut code = CodeSection::new();
        let mut function = Function::new([]);
        function.instructions().i32_const(number).end();
        let mut two = Function::new([]);
        two.instruction(&Instruction::GlobalGet(global))
            .instruction(&Instruction::Call(0))
            .instruction(&Instruction::I32Add);
        two.instruction(&Instruction::End);
        code.function(&function).function(&two);
        let mut data = DataSection::new();
        data.active(0, &ConstExpr::i32_const(index), [1, 2]);
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions).section(&elements).section(&code).section(&data);
        module.finish()
    }

    #[test]
    fn indices_lead_where_they_led() {
        let module = merged(&[&part(5, 1, Kind::Global), &part(7, 4, Kind::Table)]).expect("merged");
        Validator::new().validate_all(&module).expect("valid");
        let mut calls = Vec::new();
        let mut globals = Vec::new();
        let mut imports = 0;
        for payload in Parser::new(0).parse_all(&module) {
            match payload.expect("readable") {
                Payload::ImportSection(reader) => imports = reader.into_imports().count(),
                Payload::CodeSectionEntry(body) => {
                    for operator in body.get_operators_reader().expect("readable") {
                        match operator.expect("readable") {
                            wasmparser::Operator::Call { function_index } => calls.push(function_index),
                            wasmparser::Operator::GlobalGet { global_index } => globals.push(global_index),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        // Table, memory and stack pointer occur once, plus the second global of the second module.
        // Its first function has index 2. The stack pointer, second there, remains first.
        assert_eq!(imports, 4);
        assert_eq!(calls, [0, 2]);
        assert_eq!(globals, [0, 0]);
    }

    #[test]
    fn exporting_part_is_rejected() {
        let mut exports = wasm_encoder::ExportSection::new();
        exports.export("memory", wasm_encoder::ExportKind::Memory, 0);
        let mut module = Module::new();
        module.section(&exports);
        let error = merged(&[&module.finish()]).expect_err("refused").to_string();
        assert!(error.contains("not merged"), "{error}");
    }
}
