package load

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/exitcode"
	"reprise/interpreter/expression"
	"reprise/starter/cli"
)

func TestSetIsTyped(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ set, want string }{
		{"n=3", `{"n":3}`},
		{"n=12345678901234567890", `{"n":12345678901234567890}`},
		{"n=0.5", `{"n":0.5}`},
		{"b=true", `{"b":true}`},
		{"x=null", `{"x":null}`},
		{"x=", `{"x":""}`},
		{"x= ", `{"x":null}`},
		{"s=Ada", `{"s":"Ada"}`},
		{`s="3"`, `{"s":"3"}`},
		{"s='true'", `{"s":"true"}`},
		{"s=a=b", `{"s":"a=b"}`},
		{"s=http://127.0.0.1:8088/x?y=1", `{"s":"http://127.0.0.1:8088/x?y=1"}`},
		{"s=note: not a map", `{"s":"note: not a map"}`},
		{"s=- not a list", `{"s":"- not a list"}`},
		{"s=*star", `{"s":"*star"}`},
		{"s=@at", `{"s":"@at"}`},
		{"s=100%", `{"s":"100%"}`},
		{"l=[p1,p2]", `{"l":["p1","p2"]}`},
		{"l=[]", `{"l":[]}`},
		{`m={"a": [1, {"b": null}]}`, `{"m":{"a":[1,{"b":null}]}}`},
		{"m={a: 1}", `{"m":{"a":1}}`},
		{`s="\ud83d\ude00 \/"`, `{"s":"😀 /"}`},
		{`m={"a": "\ud83d\ude00"}`, `{"m":{"a":"😀"}}`},
		{"n=1e400", `{"n":1e400}`},
		{"a.b=1", `{"a":{"b":1}}`},
		{"a.b.c=[1]", `{"a":{"b":{"c":[1]}}}`},
	} {
		t.Run(test.set, func(t *testing.T) {
			t.Parallel()
			values, err := ParseSet(test.set)
			require.NoError(t, err)
			encoded, err := json.Marshal(values)
			require.NoError(t, err)
			require.Equal(t, test.want, string(encoded))
		})
	}
}

func TestSetRefuses(t *testing.T) {
	t.Parallel()
	for set, message := range map[string]string{
		"n":                                     `--set "n": expected key=value`,
		"=3":                                    `--set "=3": expected key=value`,
		"a..b=1":                                "the key has an empty part",
		".a=1":                                  "the key has an empty part",
		"l=[1":                                  "--set l: the value is neither YAML nor JSON",
		"m={a: 1}}":                             "--set m: the value is neither YAML nor JSON",
		`s="open`:                               "--set s: the value is neither YAML nor JSON",
		`m={"a": 1, "a": 2}`:                    `the key "a" occurs twice in the object that ends at byte 16`,
		"n=" + strings.Repeat("1", 1001):        "the number 1111111111111111111111111111111111111111… has 1001 digits: a number may have at most 1000",
		"n=[" + strings.Repeat("1", 1001) + "]": "has 1001 digits: a number may have at most 1000",
		"n=-0." + strings.Repeat("1", 1001):     "has 1002 digits: a number may have at most 1000",
	} {
		_, err := ParseSet(set)
		require.ErrorContains(t, err, message, set)
		var stated *cli.StatusError
		require.ErrorAs(t, err, &stated)
		require.Equal(t, exitcode.Usage, stated.Status)
	}
}

func TestWorkloadMergesFilesThenSets(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"first.yaml":  "n: 1\nm: {a: 1, b: 1}\n",
		"second.json": `{"m": {"b": 2, "c": 2}}`,
		"empty.yaml":  "",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	flags := WorkloadFlags{
		Files: []string{
			filepath.Join(folder, "first.yaml"), filepath.Join(folder, "second.json"), filepath.Join(folder, "empty.yaml"),
		},
		Sets: []string{"m.c=3", "m.d=3", "x=3"},
	}
	workload, err := flags.Read()
	require.NoError(t, err)
	encoded, err := json.Marshal(workload)
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1,"m":{"a":1,"b":2,"c":3,"d":3},"x":3}`, string(encoded))
}

func TestWorkloadFilesOfJSON(t *testing.T) {
	t.Parallel()
	const emoji = `{"s": "\ud83d\ude00", "path": "a\/b", "n": 1e400}`
	for _, c := range []struct{ name, text, want, refused string }{
		{name: "a.json", text: emoji, want: `{"n":1e400,"path":"a/b","s":"😀"}`},
		{name: "b.txt", text: emoji, want: `{"n":1e400,"path":"a/b","s":"😀"}`},
		{name: "mark.JSON", text: "\uFEFF" + emoji, want: `{"n":1e400,"path":"a/b","s":"😀"}`},
		{name: "empty.json", want: `{}`},
		{name: "c.json", text: "a: 1", refused: "c.json: not JSON: invalid character 'a'"},
		{name: "d.json", text: `{"a": {"b": 1, "c": [], "b": 2}}`, refused: `the key "b" occurs twice in the object that ends at byte 31`},
		{name: "e.json", text: `[1]`, refused: "must contain a map, not a list"},
		{name: "f.json", text: `{"n": ` + strings.Repeat("7", 1_000_000) + `}`, refused: "at byte 6: the number 7777777777777777777777777777777777777777… has 1000000 digits"},
		{name: "g.yaml", text: `n: ` + strings.Repeat("7", 1001), refused: "has 1001 digits: a number may have at most 1000"},
		{name: "h.yaml", text: `n: 1.` + strings.Repeat("7", 1001), refused: "has 1002 digits: a number may have at most 1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), c.name)
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			flags := WorkloadFlags{Files: []string{path}}
			values, err := flags.Read()
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			encoded, err := json.Marshal(expression.Of(values))
			require.NoError(t, err)
			require.Equal(t, c.want, string(encoded))
		})
	}
}
