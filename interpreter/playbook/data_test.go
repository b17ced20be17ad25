package playbook_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

func TestDataReadsYAMLAndJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                            "null",
		" \n":                         "null",
		"3":                           "3",
		"12345678901234567890":        "12345678901234567890",
		"text":                        `"text"`,
		"[1, two, null]":              `[1,"two",null]`,
		"a: {b: 0.5}\nc: [true]":      `{"a":{"b":0.5},"c":[true]}`,
		`{"a": {"b": [1, "\u00e9"]}}`: `{"a":{"b":[1,"é"]}}`,
	} {
		value, found := playbook.DecodeData(source.NewFile("data", []byte(text)))
		require.Empty(t, found, text)
		encoded, err := json.Marshal(value)
		require.NoError(t, err)
		require.Equal(t, want, string(encoded), text)
	}
}

func TestDataRefusesWhatPlaybooksMayNotHave(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]string{
		"a: 1\na: 2":                           playbook.CodeDuplicateKey,
		"a: &x [*x]":                           playbook.CodeAliasCycle,
		"{{ a }}":                              playbook.CodeUnquotedTemplate,
		"a: !!binary aGk=":                     playbook.CodeYAMLTag,
		strings.Repeat("[", 70):                "",
		strings.Repeat("a", 1<<20+1):           playbook.CodeTooLarge,
		"a: " + strings.Repeat("[", 3) + "]]":  "",
		"1: a\n2: b\n---\nanother: document\n": playbook.CodeSeveralDocuments,
	} {
		_, found := playbook.DecodeData(source.NewFile("data", []byte(text)))
		require.True(t, found.HasErrors(), "%.40s", text)
		if code != "" {
			require.Equal(t, code, found[0].Code, "%.40s", text)
		}
	}
}
