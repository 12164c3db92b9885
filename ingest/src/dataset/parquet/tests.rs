//! Files of four rows, written with Apache's own writer: 5, 3, 7 and 5 tokens, lists of 2, 1, 3 and 1 numbers (one of them
//! missing), 0, 2, 1 and 0 images of two members each, scores 1, 3, 2 and 1.

use planner::workload::Dataset;
use proptest::prelude::*;

use super::super::ImportError;
use super::super::tests::{import, names};

/// Snappy, dictionaries, pages of the first version.
const SNAPPY: &str = "5041523115041530152e4c150615001200001804050009013c030000000000000007000000000000001500151415182c1508\
    15101506150600000a240200000008010203240015041528152c4c150a1500120000144c0100000009000000020000000300\
    0000040000001500152415282c150e151015061506000012440200000003320300000003fb3f03030834021504150a150e4c\
    15021500120000051001000000621500151e15222c150a15101506150600000f380200000003040300000003a80000061504\
    151015144c15021500120000081c000000000000e03f1500151c15202c150a15101506150600000e34020000000304020000\
    00030e000615041530152c4c15061500120000180000050104f03f050728000840000000000000004015001508150c2c1508\
    1510150615060000040c02032400150219bc48016d15080015042502180a6e756d5f746f6b656e730035021809696e707574\
    5f696473150215064c3c000000350418046c697374150200150225021807656c656d656e740035001806696d616765731502\
    15064c3c000000350418046c69737415020035001807656c656d656e74150400150c25021805627974657300150a25001801\
    7700150a2500180573636f7265001608191c195c26001c1504193500061019180a6e756d5f746f6b656e7315021608168201\
    16840126522608292c1504150015020015001510150200000026001c15021935000610193809696e7075745f696473046c69\
    737407656c656d656e741502160e168a0116920126d401268c01292c1504150015020015001510150200000026001c150c19\
    35000610194806696d61676573046c69737407656c656d656e740562797465731502160a1666166e26c802269e02292c1504\
    150015020015001510150200000026001c150a1935000610194806696d61676573046c69737407656c656d656e7401771502\
    160a166a167226bc03268c03292c1504150015020015001510150200000026001c150a193500061019180573636f72651502\
    16081676167626c60426fe03292c1504150015020015001510150200000016d2041608260816ec041400002800195c1c0000\
    1c00001c00002c00002c000000f301000050415231";

/// Neither, pages of the second version with two rows each, two row groups.
pub(super) const PLAIN: &str = "504152311506152415245c1504150015041500150415001200000401050000000000000003000000000000001506151a151a\
    5c1506150215041500150615041200000302033b0001000000090000001506151e151e5c1506150215041500150615041200\
    000304032800010000006201000000621506152815285c15061502150415001504150412000003040306000000000000e03f\
    000000000000e03f1506152015205c150415001504150015001500120000000000000000f03f000000000000084015061524\
    15245c1504150015041500150415001200000401070000000000000005000000000000001506152815285c15081500150415\
    001504150412000003060803010000000200000003000000040000001506151415145c150415021504150015061504120000\
    040003020001000000621506151815185c15041502150415001504150412000004000301000000000000e03f150615201520\
    5c1504150015041500150015001200000000000000000040000000000000f03f150419bc48016d15080015042502180a6e75\
    6d5f746f6b656e730035021809696e7075745f696473150215064c3c000000350418046c697374150200150225021807656c\
    656d656e740035001806696d61676573150215064c3c000000350418046c69737415020035001807656c656d656e74150400\
    150c25021805627974657300150a250018017700150a2500180573636f7265001608192c195c26001c15041925000619180a\
    6e756d5f746f6b656e7315001604165016502608491c15061500150200000026001c150219250006193809696e7075745f69\
    6473046c69737407656c656d656e7415001606164616462658491c15061500150200000026001c150c19250006194806696d\
    61676573046c69737407656c656d656e7405627974657315001606164a164a269e01491c15061500150200000026001c150a\
    19250006194806696d61676573046c69737407656c656d656e740177150016061654165426e801491c150615001502000000\
    26001c150a1925000619180573636f726515001604164c164c26bc02491c1506150015020000001680031604260816800314\
    0000195c26001c15041925000619180a6e756d5f746f6b656e731500160416501650268803491c1506150015020000002600\
    1c150219250006193809696e7075745f696473046c69737407656c656d656e74150016081654165426d803491c1506150015\
    0200000026001c150c19250006194806696d61676573046c69737407656c656d656e74056279746573150016041640164026\
    ac04491c15061500150200000026001c150a19250006194806696d61676573046c69737407656c656d656e74017715001604\
    1644164426ec04491c15061500150200000026001c150a1925000619180573636f726515001604164c164c26b005491c1506\
    1500150200000016f402160426880316f4021402002800195c1c00001c00001c00002c00002c000000c502000050415231";

pub(super) fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal")).collect()
}

fn rows(bytes: &[u8], asked: Option<&str>) -> (Vec<u32>, Vec<u32>) {
    match import(bytes, asked).map(|imported| imported.dataset) {
        Ok(Dataset::Rows { text_tokens, images, .. }) => (text_tokens, images),
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_and_lists_are_read() {
    for file in [SNAPPY, PLAIN] {
        let file = bytes(file);
        assert_eq!(rows(&file, None), (vec![5, 3, 7, 5], vec![0, 2, 1, 0]));
        assert_eq!(rows(&file, Some("input_ids")).0, [2, 1, 3, 1]);
        assert_eq!(rows(&file, Some("score")).0, [1, 3, 2, 1]);
        let report = import(&file, None).expect("a file").report;
        assert_eq!(
            (report.format.as_str(), report.source.as_str(), report.parsed),
            ("Parquet file", "column num_tokens", 4)
        );
        assert_eq!(names(&report.candidates), ["input_ids", "images", "score"]);
    }
}

/// A value of a page's header or of the footer, changed in place.
fn changed(from: &str, to: &str) -> Vec<u8> {
    assert_eq!((from.len(), SNAPPY.matches(from).count()), (to.len(), 1), "{from}");
    bytes(&SNAPPY.replace(from, to))
}

/// A value of the footer, changed into a longer one.
fn grown(from: &str, to: &str) -> Vec<u8> {
    assert_eq!(SNAPPY.matches(from).count(), 1, "{from}");
    let mut file = bytes(&SNAPPY.replace(from, to));
    let at = file.len() - 8;
    let length = u32::from_le_bytes(*file[at..].first_chunk().expect("four bytes"));
    let longer = length + (to.len() - from.len()) as u32 / 2;
    file[at..at + 4].copy_from_slice(&longer.to_le_bytes());
    file
}

#[test]
fn what_is_wrong_is_told() {
    let sound = bytes(SNAPPY);
    // The footer's column num_tokens is "int64, encodings, path, codec 1, 4 values".
    let path = "19180a6e756d5f746f6b656e73";
    // -2^63, the number behind which none can be taken away.
    let least = "ffffffffffffffffff01";
    for (file, told) in [
        (sound[..400].to_vec(), "does not end with PAR1"),
        ([&sound[..sound.len() - 8], &[0xff, 0xff, 0, 0], b"PAR1"].concat(), "longer than the file"),
        ([&sound[..sound.len() - 8], &[20, 0, 0, 0], b"PAR1"].concat(), "footer cannot be read"),
        (changed(&format!("{path}15021608"), &format!("{path}150c1608")), "packed with Zstandard"),
        (grown(&format!("{path}15021608"), &format!("{path}15{least}1608")), "packed with an unknown codec"),
        // The root of the schema is "name m, 4 children".
        (grown("48016d1508", &format!("48016d15{least}")), "footer cannot be read"),
        (changed(&format!("{path}15021608"), &format!("{path}15021606")), "another number of values"),
        (changed("2e4c150615", "2c4c150615"), "cannot be"),
        (changed("15041530152e4c", "15041530142e4c"), "page"),
        (b"PAR1".to_vec(), "does not end"),
    ] {
        let error = import(&file, None).expect_err(told).to_string();
        assert!(error.contains(told), "{told}: {error}");
    }
    assert!(matches!(import(&sound, Some("nope")), Err(ImportError::NoSuchColumn { .. })));
    let error = import(&sound, Some("images")).expect_err("rows without images have no length").to_string();
    assert!(error.contains("row 1: 0 is not a length"), "{error}");
}

proptest! {
    #[test]
    fn any_change_is_read_or_refused(
        second in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut file = bytes(if second { PLAIN } else { SNAPPY });
        let tail = file[file.len() - 8..].to_vec();
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Some(cut) = cut {
            file.truncate(4 + cut.index(file.len() - 4));
            file.extend(tail);
        }
        for column in ["num_tokens", "input_ids", "score"] {
            let _ = import(&file, Some(column));
        }
    }

    #[test]
    fn any_footer_is_read_or_refused(footer in prop::collection::vec(any::<u8>(), 0..200)) {
        let length = (footer.len() as u32).to_le_bytes();
        let _ = import(&[b"PAR1", &footer[..], &length, b"PAR1"].concat(), None);
    }
}
