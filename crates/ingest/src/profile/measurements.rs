//! Output of `planscope measure`, JSON "planscope-measurements" version 1.
//!
//! The document is read row by row, with a JSON path for each problem. Rows with `kernel` are operators of a fit. All other
//! rows, and those of sections that validate, are counted by section.

use std::collections::BTreeMap;

use planner::calibration::Sample;

use super::cells::{Cells, described};
use super::hints::Hints;
use super::ledger::Ledger;
use super::refused::Rejection;
use super::{Format, MAX_BYTES, MAX_VALUES, Profile, ProfileError, own};
use crate::json::{Bounds, JsonError, Scanner, Token};

/// Value of `format`.
const FORMAT: &str = "planscope-measurements";
/// Supported value of `version`.
const VERSION: &str = "1";
/// Section that validates predictions. Its rows are never fitted.
const VALIDATION: &str = "validation";
/// Maximum nesting depth and string length of a document.
const BOUNDS: Bounds = Bounds { depth: 16, string_bytes: 4096, bytes: MAX_BYTES as u64 };

/// A row of `results` with its scalar fields as text.
#[derive(Debug, Default)]
struct Row {
    path: String,
    fields: Vec<(String, String)>,
}

impl Row {
    fn text(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, text)| text.as_str())
    }
}

impl Cells for Row {
    fn location(&self, column: &str) -> String {
        format!("{}.{column}", self.path)
    }

    fn describe(&self, column: &str) -> String {
        described(self.location(column), self.text(column).unwrap_or_default())
    }

    fn optional(&self, column: &str) -> Result<Option<&str>, Rejection> {
        Ok(self.text(column).filter(|text| !text.is_empty()))
    }
}

/// An operator of a fit, with the form in which it ran.
struct Operator {
    sample: Sample,
    place: String,
    /// Attention kernel, if it is an attention.
    backend: Option<String>,
    /// 0 for the plain form of a shape. Other forms of the same shape are not fitted.
    form: u32,
}

/// Reads a document.
pub(super) fn read(text: &str, hints: &Hints) -> Result<Profile, ProfileError> {
    let mut reader = Reader {
        scanner: Scanner::new(text.as_bytes(), BOUNDS),
        ledger: Ledger::new(Format::Measurements),
        format: None,
        version: None,
        device: None,
        operators: Vec::new(),
        selected: Vec::new(),
    };
    reader.document()?;
    let Reader { mut ledger, format, version, device, operators, selected, .. } = reader;
    expect("format", format.as_deref(), FORMAT)?;
    expect("version", version.as_deref(), VERSION)?;
    take(&mut ledger, operators, &selected)?;
    let device = device.or_else(|| hints.device(&mut ledger));
    ledger.finish(device)
}

fn expect(path: &str, found: Option<&str>, expected: &str) -> Result<(), ProfileError> {
    match found {
        Some(found) if found == expected => Ok(()),
        Some(found) => Err(field(path, format!("it is {found:?}, and {expected:?} is read"))),
        None => Err(field(path, "it is missing")),
    }
}

fn field(path: impl Into<String>, problem: impl Into<String>) -> ProfileError {
    ProfileError::Field { path: path.into(), problem: problem.into() }
}

impl From<JsonError> for ProfileError {
    fn from(error: JsonError) -> Self {
        Self::Json { detail: error.to_string() }
    }
}

/// Adds the operators to the ledger. Attention is that of the kernel that PyTorch selects, if the file says so, because
/// one curve describes one kernel. A shape with several forms has its plain form.
fn take(ledger: &mut Ledger, operators: Vec<Operator>, selected: &[String]) -> Result<(), ProfileError> {
    let key = |operator: &Operator| format!("{:?}", operator.sample.kernel);
    let mut forms: BTreeMap<String, u32> = BTreeMap::new();
    for operator in &operators {
        let form = forms.entry(key(operator)).or_insert(operator.form);
        *form = operator.form.min(*form);
    }
    for operator in operators {
        match &operator.backend {
            Some(backend) if backend == "math" || !(selected.is_empty() || selected.contains(backend)) => {
                ledger.leave_out(format!("attention by {backend}"))?;
            }
            _ if operator.form > forms[&key(&operator)] => ledger.leave_out("other forms of fitted products")?,
            _ => ledger.take(|| operator.place.clone(), Ok(operator.sample))?,
        }
    }
    if !selected.is_empty() {
        ledger.assume(format!("attention runs as {}, which PyTorch selects on this device", selected.join(" and ")));
    }
    Ok(())
}

/// Reads the document in a single pass.
struct Reader<'t> {
    scanner: Scanner<&'t [u8]>,
    ledger: Ledger,
    format: Option<String>,
    version: Option<String>,
    device: Option<String>,
    operators: Vec<Operator>,
    /// Attention kernels that PyTorch selects for layers.
    selected: Vec<String>,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<(), ProfileError> {
        self.begin("document", &Token::BeginObject)?;
        while let Some(key) = self.key()? {
            match key.as_str() {
                "format" => self.format = Some(self.scalar("format")?),
                "version" => self.version = Some(self.scalar("version")?),
                "header" => self.header()?,
                "interrupted" => {
                    let reason = self.scalar("interrupted")?;
                    self.ledger.assume(format!("the measurement ended early: {reason}"));
                }
                "sections" => self.sections()?,
                _ => self.scanner.skip()?,
            }
        }
        Ok(())
    }

    fn header(&mut self) -> Result<(), ProfileError> {
        self.begin("header", &Token::BeginObject)?;
        while let Some(key) = self.key()? {
            if key == "device" {
                self.device = Some(self.scalar("header.device")?).filter(|device| !device.is_empty());
            } else {
                self.scanner.skip()?;
            }
        }
        Ok(())
    }

    fn sections(&mut self) -> Result<(), ProfileError> {
        self.begin("sections", &Token::BeginArray)?;
        let mut index = 0;
        while self.element(&format!("sections[{index}]"))? {
            self.section(&format!("sections[{index}]"))?;
            index += 1;
        }
        Ok(())
    }

    /// Reads a section after its opening brace. The name precedes the results, so that rows need not wait for it.
    fn section(&mut self, path: &str) -> Result<(), ProfileError> {
        let (mut name, mut validates) = (None, false);
        while let Some(key) = self.key()? {
            match key.as_str() {
                "name" => name = Some(self.scalar(&format!("{path}.name"))?),
                "fitted" => validates = self.scalar(&format!("{path}.fitted"))? == "false",
                "results" => {
                    let name =
                        name.as_deref().ok_or_else(|| field(format!("{path}.name"), "it does not precede results"))?;
                    self.results(name, validates || name == VALIDATION, &format!("{path}.results"))?;
                }
                _ => self.scanner.skip()?,
            }
        }
        if name.is_some() { Ok(()) } else { Err(field(format!("{path}.name"), "it is missing")) }
    }

    fn results(&mut self, section: &str, validates: bool, path: &str) -> Result<(), ProfileError> {
        self.begin(path, &Token::BeginArray)?;
        let mut index = 0;
        while self.element(&format!("{path}[{index}]"))? {
            let row = self.row(format!("{path}[{index}]"))?;
            index += 1;
            if let Some(backend) = row.text("attention").filter(|name| *name != "unknown")
                && !self.selected.iter().any(|known| known == backend)
            {
                self.selected.push(backend.to_owned());
            }
            if validates || row.text("kernel").is_none() {
                self.ledger.leave_out(section)?;
            } else {
                self.operator(&row)?;
            }
        }
        Ok(())
    }

    /// Reads a row after its opening brace. The text of lists and objects is empty.
    fn row(&mut self, path: String) -> Result<Row, ProfileError> {
        let mut row = Row { path, fields: Vec::new() };
        while let Some(key) = self.key()? {
            let depth = self.scanner.depth();
            let text = match self.scanner.next()? {
                Token::String(text) | Token::Number(text) => text.to_owned(),
                Token::Bool(flag) => flag.to_string(),
                Token::BeginArray | Token::BeginObject => {
                    while self.scanner.depth() > depth {
                        self.scanner.next()?;
                    }
                    String::new()
                }
                _ => continue,
            };
            row.fields.push((key, text));
        }
        Ok(row)
    }

    fn operator(&mut self, row: &Row) -> Result<(), ProfileError> {
        if row.text("accumulate") == Some("fp32_add") {
            // A product and an addition, which is no single kernel.
            return self.ledger.leave_out("products with a separate accumulation");
        }
        if row.text("kernel") == Some("attention") && row.text("lengths").is_some() {
            // Calls with nested tensors include work of the host: cuDNN builds a plan in each.
            return self.ledger.leave_out("attention over packed lengths");
        }
        let place = || row.describe("time_us");
        let sample = own::kernel(row, &mut self.ledger)
            .and_then(|kernel| Ok(Sample { kernel, time: row.time("time_us", 1e-6)? }));
        match sample {
            Ok(sample) if self.operators.len() < MAX_VALUES => {
                let others = [("accumulate", "fp32_fused"), ("function", "bmm"), ("scales", "row")];
                let form = others.iter().filter(|(name, value)| row.text(name) == Some(*value)).count() as u32;
                let is_attention = row.text("kernel") == Some("attention");
                let backend = row.text("backend").filter(|_| is_attention).map(str::to_owned);
                self.operators.push(Operator { sample, place: place(), backend, form });
                Ok(())
            }
            Ok(_) => Err(ProfileError::TooManyValues),
            Err(refused) => self.ledger.take(place, Err(refused)),
        }
    }

    /// Reads the opening bracket of a value.
    fn begin(&mut self, path: &str, bracket: &Token<'static>) -> Result<(), ProfileError> {
        if self.scanner.next()? == *bracket {
            return Ok(());
        }
        let expected = if *bracket == Token::BeginArray { "a list" } else { "an object" };
        Err(field(path, format!("it is not {expected}")))
    }

    /// Reads the opening brace of the next element of a list; false at the end of the list.
    fn element(&mut self, path: &str) -> Result<bool, ProfileError> {
        match self.scanner.next()? {
            Token::BeginObject => Ok(true),
            Token::EndArray => Ok(false),
            Token::End => Err(field(path, "the file ends here")),
            _ => Err(field(path, "it is not an object")),
        }
    }

    /// Returns the next key of an object; `None` at its end.
    fn key(&mut self) -> Result<Option<String>, ProfileError> {
        match self.scanner.next()? {
            Token::Key(key) => Ok(Some(key.to_owned())),
            Token::EndObject => Ok(None),
            _ => Err(field("document", "the file ends within an object")),
        }
    }

    /// Returns a text, number or flag as text.
    fn scalar(&mut self, path: &str) -> Result<String, ProfileError> {
        match self.scanner.next()? {
            Token::String(text) | Token::Number(text) => Ok(text.to_owned()),
            Token::Bool(flag) => Ok(flag.to_string()),
            _ => Err(field(path, "it is no text or number")),
        }
    }
}
