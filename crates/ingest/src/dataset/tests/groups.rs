//! Tables with a row per group of samples, per turn, or without texts.

use super::*;

/// Notes of the candidates of an unclear file.
fn notes(file: &str) -> String {
    match import(file.as_bytes(), None) {
        Err(ImportError::Unclear { candidates }) => {
            candidates.into_iter().filter_map(|candidate| candidate.note).collect::<Vec<_>>().join("; ")
        }
        other => panic!("{file:?}: {other:?}"),
    }
}

#[test]
fn totals_of_named_groups_are_asked_for() {
    for file in [
        "split,tokens\ntrain,912345\nvalidation,40123\ntest,41234\n",
        "language,tokens\nen,912345\nde,40123\n",
        "user,tokens\nann,91234\nbob,4012\n",
        "user_id,tokens\n17,91234\n4,4012\n9,512\n",
        "day,tokens\n2024-05-01,91234\n2024-05-02,4012\n",
        "weekday,prompt_tokens,completion_tokens\nMon,9123,321\nTue,4012,123\n",
        "file,tokens\ndata-0.parquet,912345\ndata-1.parquet,40123\n",
        "source,num_tokens\nweb,512\ncode,300\nbooks,90\nTotal (all sources),902\nAverage per source,301\n",
        "tokens,language\n912345,en\n40123,de\n300,fr\n",
        ",language,num_tokens\n0,en,912345\n1,de,40123\n",
        "{\"language\": \"en\", \"num_tokens\": 912345}\n{\"language\": \"de\", \"num_tokens\": 40123}\n",
    ] {
        assert!(notes(file).contains("totals of several samples"), "{file}: {}", notes(file));
    }
    for (file, expected) in [
        // Several samples per group, a file or an identifier per sample, and times.
        ("language,tokens\nen,912\nde,401\nen,300\n", vec![912, 401, 300]),
        ("tokens,language\n912,en\n401,de\n", vec![912, 401]),
        ("file,tokens\na.txt,912\nb.txt,401\n", vec![912, 401]),
        ("source,tokens\nhttps://a.org/x,912\nhttps://a.org/y,401\n", vec![912, 401]),
        ("id,language,tokens\n7,en,912\n9,de,401\n", vec![912, 401]),
        ("date,tokens\n2024-05-01 10:00:00,912\n2024-05-01 10:00:07,401\n", vec![912, 401]),
        ("language,text,tokens\nen,a b,912\nde,c d,401\n", vec![912, 401]),
    ] {
        assert_eq!(rows(file).0, expected, "{file}");
    }
}

#[test]
fn turns_are_asked_for() {
    for file in [
        "{\"conversation_id\": 1, \"role\": \"user\", \"content\": \"abc\"}\n{\"conversation_id\": 1, \"role\": \"assistant\", \"content\": \"de\"}\n",
        "{\"message_tree_id\": \"t\", \"parent_id\": null, \"role\": \"prompter\", \"text\": \"abc\"}\n{\"message_tree_id\": \"t\", \"parent_id\": \"m\", \"role\": \"assistant\", \"text\": \"de\"}\n",
        "conversation_id,turn,text\n1,0,a b c\n1,1,d e\n2,0,f g\n",
        "session_id,speaker,num_tokens\n1,user,5\n1,assistant,7\n",
        "role,content\nuser,a b c\nassistant,d e f\n",
    ] {
        assert!(notes(file).contains("turn of a conversation"), "{file}: {}", notes(file));
    }
    for file in [
        "role,text\nengineer,a b c\npilot,d e f\n",
        "conversation_id,text\n1,a b c\n2,d e\n",
        "conversation_id,turn,prompt,response\n1,0,a b c,d\n1,1,d e,f\n",
        "{\"role\": \"user\", \"text\": \"abc\"}\n{\"role\": \"user\", \"text\": \"de\"}\n",
    ] {
        assert_eq!(rows(file).0.len(), 2, "{file}");
    }
}

#[test]
fn paths_are_no_texts() {
    for value in
        ["s3://bucket/data/1.txt", "/data/x.txt", "https://example.com/page", "shards/a.jsonl", "C:\\\\data\\\\x.txt"]
    {
        for name in ["text", "content", "prompt"] {
            let file = format!("{{\"id\": 7, \"{name}\": \"{value}\"}}\n").repeat(2);
            assert!(notes(&file).contains("paths or addresses"), "{file}: {}", notes(&file));
            let error = import(file.as_bytes(), Some(name)).expect_err(&file).to_string();
            assert!(error.contains("paths or addresses"), "{error}");
        }
    }
    assert!(refusal(r#"["https://a.org/x", "https://a.org/y"]"#).contains("paths or addresses"));
    // Texts with a path, and another column with the length.
    assert_eq!(rows("text\nsee /data/x.txt\nopen https://a.org\n").0.len(), 2);
    assert_eq!(rows("text,num_tokens\n/data/x.txt,5\n/data/y.txt,7\n").0, [5, 7]);
}

#[test]
fn names_and_codes_are_no_texts() {
    for file in [
        "country,code,population\nGermany,DE,83000000\nFrance,FR,67000000\n",
        "article,price,stock\nTable lamp,12.5,3\nChair,40,12\n",
        "url,content,status\nhttp://a.org,text/html,200\nhttp://b.org,image/png,404\n",
    ] {
        assert!(matches!(import(file.as_bytes(), None), Err(ImportError::Unclear { .. })), "{file}");
    }
    for file in [
        "code,stars\n\"def f(x):\n    return x + 1  # the next number\",3\n\"def g(x):\n    return x - 1  # the last number\",4\n",
        "article,price\nA long article about the price of tables and chairs,3\nAnother article about lamps and their stock in shops,4\n",
        "id,content,label\n1,abc,0\n2,de,1\n",
        "caption,width\nA red dog,640\nTwo cats,480\n",
    ] {
        assert_eq!(rows(file).0.len(), 2, "{file}");
    }
}
