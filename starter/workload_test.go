package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
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
		{"a.b=1", `{"a":{"b":1}}`},
		{"a.b.c=[1]", `{"a":{"b":{"c":[1]}}}`},
	} {
		t.Run(test.set, func(t *testing.T) {
			t.Parallel()
			values, err := parseSet(test.set)
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
		"n":         `--set "n": expected key=value`,
		"=3":        `--set "=3": expected key=value`,
		"a..b=1":    "the key has an empty part",
		".a=1":      "the key has an empty part",
		"l=[1":      "--set l: the value is neither YAML nor JSON",
		"m={a: 1}}": "--set m: the value is neither YAML nor JSON",
		`s="open`:   "--set s: the value is neither YAML nor JSON",
	} {
		_, err := parseSet(set)
		require.ErrorContains(t, err, message, set)
		var stated *statusError
		require.ErrorAs(t, err, &stated)
		require.Equal(t, exitUsage, stated.status)
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
	flags := workloadFlags{
		files: []string{
			filepath.Join(folder, "first.yaml"), filepath.Join(folder, "second.json"), filepath.Join(folder, "empty.yaml"),
		},
		sets: []string{"m.c=3", "m.d=3", "x=3"},
	}
	workload, err := flags.read()
	require.NoError(t, err)
	encoded, err := json.Marshal(workload)
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1,"m":{"a":1,"b":2,"c":3,"d":3},"x":3}`, string(encoded))
}
