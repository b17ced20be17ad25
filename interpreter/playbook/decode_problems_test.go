package playbook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

func TestDurations(t *testing.T) {
	t.Parallel()

	tests := []struct {
		text string
		want time.Duration
		bad  string
	}{
		{text: "90s", want: 90 * time.Second},
		{text: `"1m30s"`, want: 90 * time.Second},
		{text: "0.5", want: 500 * time.Millisecond},
		{text: "0.3", want: 300 * time.Millisecond},
		{text: "2", want: 2 * time.Second},
		{text: "0", want: 0},
		{text: "1e2", want: 100 * time.Second},
		{text: "0x10", want: 16 * time.Second},
		{text: "-1s", bad: "must not be negative, not -1s [bounds]"},
		{text: "-0.5", bad: "must not be negative, not -0.5 [bounds]"},
		{text: ".nan", bad: ".nan is not a number"},
		{text: ".inf", bad: ".inf is not a number"},
		{text: "1e300", bad: "must be less than 9223372037 seconds"},
		{text: "123456789012345678901234567890", bad: "must be less than"},
		{text: "1d", bad: `must be a duration such as 90s or 1m30s, or a number of seconds, not the text "1d"; write 24h [wrong-type]`},
		{text: "2 weeks", bad: `not the text "2 weeks"; write 336h [wrong-type]`},
		{text: "5 minutes", bad: `not the text "5 minutes"; write 5m [wrong-type]`},
		{text: "soon", bad: `must be a duration such as 90s or 1m30s, or a number of seconds, not the text "soon" [wrong-type]`},
		{text: `"5"`, bad: `not the text "5" [wrong-type]`},
		{text: "true", bad: "not true [wrong-type]"},
		{text: "[1]", bad: "not a list [wrong-type]"},
		{text: "{a: 1}", bad: "not a map [wrong-type]"},
		{text: "", bad: "not nothing [wrong-type]"},
		{text: `"{{ wait }}"`, bad: "must not be a template; for a wait that the response asks for, use retry_after, which may be one [template-not-allowed]"},
	}

	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()

			text := head + "workflow:\n  - step: a\n    tool: x\n    retry:\n      - when: error\n        then:\n          delay: " + tt.text + "\n"

			pb, found := decode(t, text)
			if tt.bad != "" {
				require.Len(t, found, 1, found.Error())
				require.Contains(t, found.Error(), tt.bad)
				require.Equal(t, 10, found[0].Pos.Line)
				require.Nil(t, pb.FirstStep().Retry[0].Then.Delay)
				return
			}

			require.Empty(t, found, found.Error())
			require.Equal(t, tt.want, *pb.FirstStep().Retry[0].Then.Delay)
		})
	}
}

// TestRequiredKeys checks that a key that is missing is reported, unless what is
// reported is the key that it may have been meant as.
func TestRequiredKeys(t *testing.T) {
	t.Parallel()

	const older = "apiVersion: noetl.io/v1\nkind: Playbook\nworkflow: [{step: start}]\n"

	for text, want := range map[string]string{
		older + "metadata: {nMme: a, path: b}\n":                            `4:11: metadata needs "name", for example name: my_playbook [missing-key]`,
		older + "metadata: {nMme: [a]}\n":                                   `4:11: metadata needs "name", for example name: my_playbook [missing-key]`,
		older + "metadata: {name: a, nMme: b}\n":                            "",
		"apiVersion: reprise/v1\n" + older[24:] + "metadata: {nMme: a}\n":   `4:12: unknown key "nMme" in metadata; did you mean "name"? [unknown-key]`,
		head + "workflow: [{stp: start}]\n":                                 `4:13: unknown key "stp" in step "", which has no tool; did you mean "step"? [unknown-key]`,
		older + "metadata: {name: a, description: b, path: c, tags: [d]}\n": "",
	} {
		_, found := decode(t, text)
		if want == "" {
			require.Empty(t, found)
			continue
		}

		require.Len(t, found, 1, text)
		require.Equal(t, "x.yaml:"+want, found[0].String())
	}
}

// TestAllProblemsAtOnce checks that one bad section hides nothing of another.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()

	_, found := decode(t, `apiVersion: reprise/v2
kind: Workflow
metadata: {nme: x, labels: [a]}
timeout: 0
workload: [1]
extra: 1
workbook:
  - tool: python
  - {name: x}
workflow:
  - step: a
    tool: http
    url: "{{ 1 + }}"
    join: any
    retry: 5
    loop: {collection: ids, mode: fast, batch: many, results: keep}
  - tool: http
  - step: c
    tool: {url: x}
    vars: [1]
    next: [{when: "{{ a }} b", step: d}, {step: e, then: f}, {}]
    retry:
      - then: {max_attempts: lots, colect: {}, per_iteration: {}}
      - when: x
        stop_when: [1]
    sink: {table: x}
`)

	type place struct {
		line int
		code string
	}

	var places []place
	for _, d := range found {
		places = append(places, place{d.Pos.Line, d.Code})
	}

	for _, want := range []place{
		{1, "wrong-value"},
		{2, "wrong-value"},
		{3, "unknown-key"},
		{3, "wrong-type"},
		{4, "bounds"},
		{5, "wrong-type"},
		{6, "unknown-key"},
		{8, "missing-key"},
		{9, "missing-key"},
		{13, "syntax"},
		{14, "wrong-value"},
		{15, "legacy-retry"},
		{16, "wrong-type"},
		{16, "wrong-value"},
		{17, "missing-key"},
		{19, "missing-key"},
		{20, "wrong-type"},
		{21, "condition-text"},
		{21, "conflicting-keys"},
		{21, "missing-key"},
		{23, "missing-key"},
		{23, "wrong-type"},
		{23, "unknown-key"},
		{25, "wrong-type"},
		{26, "missing-key"},
	} {
		require.Contains(t, places, want, found.Error())
	}
}

// TestNotYAML checks the line of what the YAML parser refuses; the parser's
// own message names another line for many of these.
func TestNotYAML(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, text, want string }{
		{"first line", "a: b: c\n", "x.yaml:1:5: this is not YAML: mapping values are not allowed in this context"},
		{"key without colon", "a: 1\nb\nc: 2\n", "x.yaml:2:1: this is not YAML: could not find expected ':' [yaml-syntax]"},
		{"list in a map", "a:\n  b: 1\n  c: 2\n  - d\ne: 1\n", "x.yaml:4:3: this is not YAML: did not find expected key [yaml-syntax]"},
		{"list in a map, first line", "a: 1\n- d\n", "x.yaml:2:1: this is not YAML: did not find expected key [yaml-syntax]"},
		{"key in a list", "a:\n  - b\n  c: 2\n", "x.yaml:3:3: this is not YAML: did not find expected '-' indicator; the keys of an entry start in the same column, after its dash [yaml-syntax]"},
		{"deeper than its neighbours", "a:\n  b: 1\n\n    # note\n    c: 2\n", "x.yaml:5:"},
		{"bracket left open", "a: 1\nb: [1, 2\nc: 3\nd: 4\n", "x.yaml:2:1: this is not YAML: did not find expected ',' or ']' in the list or map in brackets that starts here [yaml-syntax]"},
		{"quote left open", "a: 1\nb: \"x\nc: 3\n", "x.yaml:2:"},
		{"text behind a quote", "a: 1\nb: \"x\" y\nc: 3\n", "x.yaml:2:1: this is not YAML: did not find expected key [yaml-syntax]"},
		{"tab", "a:\n\tb: 1\n", "x.yaml:2:1: YAML is indented with spaces, not tabs; replace the tab with spaces [tab-indentation]"},
		{"tab behind spaces", "a:\n  b: 1\n  \tc: 2\n", "x.yaml:3:3: YAML is indented with spaces, not tabs; replace the tab with spaces [tab-indentation]"},
		{"unknown alias", "a: 1\nb: *none\n", "x.yaml:2:4: the alias *none has no anchor &none above it; text that begins with * must be quoted [yaml-syntax]"},
		{"two documents", "a: 1\n---\nb: 1\n", "x.yaml:2:1: a file holds one playbook; move the document that starts here to a separate file [several-documents]"},
		{"empty", "", "x.yaml:1:1: the file is empty; a playbook starts with apiVersion: reprise/v1 and kind: Playbook [empty]"},
		{"comments only", "# a\n# b\n", "x.yaml:1:1: the file is empty; a playbook starts with apiVersion: reprise/v1 and kind: Playbook [empty]"},
		{"not a map", "- a\n", "x.yaml:1:1: the playbook must be a map with apiVersion"},
		{"not UTF-8", "a: 1\nb: x\xff\n", "x.yaml:2:5: the file is not UTF-8 text here; save it as UTF-8 [encoding]"},
		{"UTF-16", "\xff\xfea\x00", "x.yaml:1:1: the file is not UTF-8 text here"},
		{"control character", "a: x\x00\n", `x.yaml:1:5: the character U+0000 is not allowed in YAML; write it in double quotes as "\x00" [encoding]`},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			pb, found := decode(t, tt.text)
			require.Nil(t, pb)
			require.Len(t, found, 1, found.Error())
			require.True(t, strings.HasPrefix(found.Error(), tt.want), found.Error())
		})
	}
}

func TestUnquotedTemplates(t *testing.T) {
	t.Parallel()

	tests := []struct{ text, want string }{
		{"url: {{ y }}", `6:10: a template needs quotes, because YAML reads {{ as a map; write url: "{{ y }}"`},
		{"url: {{ y }} # note", `write url: "{{ y }}" [`},
		{"url: {{ y }}/path", `6:10: a template needs quotes, because YAML reads {{ as a map; write url: "{{ y }}/path" [`},
		{`url: {{ y | default("x") }}`, `write url: '{{ y | default("x") }}' [`},
		{`url: {{ y["a"] ~ 'b' }}`, `write url: "{{ y[\"a\"] ~ 'b' }}" [`},
		{"params: {page: {{ y }}, size: 1}", `6:20: a template needs quotes, because YAML reads {{ as a map; write page: "{{ y }}" [`},
		{"list: [{{ y }}, 2]", `6:12: a template needs quotes, because YAML reads {{ as a map; write - "{{ y }}" [`},
		{"timeout: {{ y }}", `write timeout: "{{ y }}" [`},
		{"retry: {{ y }}", `write retry: "{{ y }}" [`},
	}

	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()

			_, found := decode(t, head+"workflow:\n  - {step: a}\n    "+tt.text+"\n")
			require.True(t, found.HasErrors())

			_, found = decode(t, head+"workflow:\n  - tool: http\n    "+tt.text+"\n    step: a\n")
			require.Len(t, found, 1, found.Error())
			require.Contains(t, found.Error(), tt.want)
			require.Equal(t, "unquoted-template", found[0].Code)
		})
	}
}

// TestLimits passes maxAliases, maxExpanded and MaxDepth.
func TestLimits(t *testing.T) {
	t.Parallel()

	nested := func(n int) string {
		return "workload: {a: " + strings.Repeat("[", n) + strings.Repeat("]", n) + "}\n"
	}
	aliases := func(n int) string {
		return "workload: {a: &a [1], b: [" + strings.TrimSuffix(strings.Repeat("*a, ", n), ", ") + "]}\n"
	}
	bomb := "workload:\n  a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'l'; c++ {
		bomb += fmt.Sprintf("  %c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+", ", 9), ", "))
	}
	wide := "workload:\n  a: &a [" + strings.Repeat("x, ", 20_000) + "x]\n  b: [*a, *a, *a, *a, *a, *a]\n"

	tests := []struct{ name, text, want string }{
		{"depth", nested(61), ""},
		{"too deep", nested(64), "[too-deep]"},
		{"far too deep", nested(5000), "[too-deep]"},
		{"aliases", aliases(100), ""},
		{"too many aliases", aliases(101), "4:"},
		{"alias bomb", bomb, "[too-many-aliases]"},
		{"aliases of much", wide, "with its aliases, the playbook has more than 100000 values"},
		{"alias of itself", "workload: {a: &a [1, *a]}\n", `4:22: the alias *a is inside its own anchor [alias-cycle]`},
		{"alias of what is around", "workload: &a {b: {c: *a}}\n", `[alias-cycle]`},
		{"merge key", "workload: {a: &a {b: 1}, c: {<<: *a}}\n", `4:30: the merge key << is not accepted; write the keys out, or repeat a whole value with an alias [merge-key]`},
		{"quoted merge key", "workload: {c: {\"<<\": 1}}\n", ""},
		{"duplicate key", "workload: {a: 1, b: {c: 1, c: 2}}\n", `4:28: the key "c" occurs twice in this map; the first is on line 4 [duplicate-key]`},
		{"duplicate numbers", "workload: {1: a, \"1\": b}\n", `[duplicate-key]`},
		{"template as key", "workload: {\"{{ a }}\": 1}\n", `a key must not be a template: its value must be known before the run [template-not-allowed]`},
		{"list as key", "workload: {? [a] : 1}\n", `a key must be text, not a list [wrong-type]`},
		{"no key", "workload: {? : 1}\n", `a key must be text, not null [wrong-type]`},
		{"no key either", "workload: {~: 1}\n", `a key must be text, not null [wrong-type]`},
		{"binary", "workload: {a: !!binary eA==}\n", `the YAML type !!binary is not accepted`},
		{"own tag", "workload: {a: !x y}\n", `the YAML type !x is not accepted; text that begins with ! must be quoted [yaml-tag]`},
		{"set", "workload: {a: !!set {b: null}}\n", `the YAML type !!set is not accepted`},
		{"not what its tag says", "workload: {a: !!int x}\n", `[yaml-tag]`},
		{"infinite", "workload: {a: [.inf, -.INF, .NaN]}\n", `.NaN is not a number in JSON; put it in quotes if it is text [bad-number]`},
		{"too large for a float", "workload: {a: !!float 1e400}\n", `[bad-number]`},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, found := decode(t, head+tt.text+"workflow: [{step: start}]\n")
			if tt.want == "" {
				require.Empty(t, found, found.Error())
				return
			}

			require.True(t, found.HasErrors())
			require.Contains(t, found.Error(), tt.want)
		})
	}
}

func TestWorkloadTemplateIsText(t *testing.T) {
	t.Parallel()

	pb, found := decode(t, head+"workload: {a: \"{{ b }}\"}\nworkflow: [{step: start}]\n")
	require.Len(t, found, 1)
	require.False(t, found.HasErrors())
	require.Equal(t, "x.yaml:4:15: warning: values of workload are constants: this stays text, braces included [template-not-allowed]", found.Error())
	require.Equal(t, "{{ b }}", pb.Workload["a"])
}

// TestSections checks that the documented keys are those that decoding accepts.
func TestSections(t *testing.T) {
	t.Parallel()

	names := map[string]bool{}

	for _, section := range playbook.Sections() {
		require.False(t, names[section.Name], section.Name)
		names[section.Name] = true

		require.NotEmpty(t, section.Keys, section.Name)

		for _, key := range section.Keys {
			require.NotEmpty(t, key.Name)
			require.NotEmpty(t, key.Doc, "%s.%s", section.Name, key.Name)
		}
	}

	require.True(t, names["step"] && names["then"] && names["loop"])
}

// FuzzDecode checks that no text makes decoding panic, that every problem has a
// place in the file, and that a playbook without problems has steps.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(everything))

	f.Add([]byte("apiVersion: noetl.io/v1\nkind: Playbook\nworkflow: [{step: start}]\nmetadata:\n  nMme: fetch_all\n\n  path: testsa\n"))

	paths, err := filepath.Glob("testdata/*/*.yaml")
	require.NoError(f, err)
	require.NotEmpty(f, paths)

	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}

	f.Fuzz(func(t *testing.T, data []byte) {
		file := source.NewFile("x.yaml", data)
		pb, found := playbook.Decode(file)

		for _, d := range found {
			require.Positive(t, d.Pos.Line, d.String())
			require.Positive(t, d.Pos.Column, d.String())
			require.NotEmpty(t, d.Code, d.String())
			require.NotEmpty(t, d.Message)
		}

		require.NotEmpty(t, file.FormatAll(found)+"x")

		if !found.HasErrors() {
			require.NotEmpty(t, pb.Steps)
			require.NotEmpty(t, pb.Name)
		}
	})
}
