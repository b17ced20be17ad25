package pyliteral_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/connector/pyliteral"
)

// TestFindDict: values are those that Python evaluates, and what only Python can evaluate is kept apart.
func TestFindDict(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]any{
		`True`: true, `False`: false, `None`: nil, `null`: nil, `true`: true,
		`1_000`: 1000, `-3`: -3, `0x1f`: 31, `1.5`: 1.5, `1e3`: 1000.0, `+2`: 2,
		`"a" 'b' """c"d"""`: `abc"d`, `r"\d"`: `\d`, `u"é"`: "é", `"\x41\u00e9\n\101\d"`: "Aé\nA\\d", "('a'\n   'b')": "ab",
		`f"a{{b}}"`: "a{b}", `f"{base}/v1"`: "https://a.test/v1", `base`: "https://a.test",
		`f"{region}.x"`: &pyliteral.FString{Parts: []any{"", &pyliteral.NameExpr{Name: "region"}, ".x"}},
		`[1, 2,]`:       []any{1, 2}, `(1,)`: []any{1}, `(1)`: 1, `()`: []any{}, `{}`: map[string]any{}, "[ # comment ]\n 1]": []any{1},
		`dlt.secrets["a.b"]`:        &pyliteral.NameExpr{Name: "dlt.secrets", Keys: []string{"a.b"}},
		`dlt.secrets.get("a")`:      &pyliteral.NameExpr{Name: "dlt.secrets", Keys: []string{"a"}},
		`os.getenv("A", "b")`:       &pyliteral.NameExpr{Name: "os.environ", Keys: []string{"A"}},
		`token`:                     &pyliteral.NameExpr{Name: "dlt.secrets", Keys: []string{"token"}},
		`{**more, "b": 2}`:          map[string]any{"a": 1, "b": 2},
		`{**nothing}`:               map[string]any{"**": &pyliteral.NameExpr{Name: "nothing"}},
		`Basic("u", password=1)`:    &pyliteral.CallExpr{Name: "Basic", Args: []any{"u"}, Named: map[string]any{"password": 1}},
		`lambda x, y: f(x, y)[1:2]`: &pyliteral.Lambda{Params: []string{"x", "y"}, Body: "f(x, y)[1:2]"},
		`5 * 60`:                    &pyliteral.Other{Text: "5 * 60"},
		`[x for x in y]`:            []any{&pyliteral.Other{Text: "x for x in y"}}, `twice`: &pyliteral.NameExpr{Name: "twice"},
		`{1, 2}`:            &pyliteral.Other{Text: "{1, 2}"},
		`b"a"`:              &pyliteral.Other{Text: `b"a"`},
		`"a" if b else "c"`: &pyliteral.Other{Text: `"a" if b else "c"`},
		`a.b().c`:           &pyliteral.Other{Text: "a.b().c"},
		`"\N{BULLET}"`:      &pyliteral.Other{Text: `"\N{BULLET}"`},
	} {
		whole := "import dlt\nbase = 'https://a.test'\nmore = {'a': 1}\ntwice = 1; twice = 2\ndef f(token: Optional[str] = dlt.secrets.value, n=1):\n  config: RESTAPIConfig = {'client': {}, 'resources': [], 'value': " + source + ",}\n  return config\n"
		dict, err := pyliteral.FindDict(whole, 0, "client", "resources")
		require.NoError(t, err, source)
		require.Equal(t, want, dict["value"], source)
	}
}

// TestFindDictRefuses: what holds no configuration says so, and bad files end soon: values deeper than maxDepth are an
// error, and after maxResolved names the others stay names.
func TestFindDictRefuses(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"a = 1":                              "there is no dict with client",
		"a = {'client': 1":                   "there is no dict with client",
		"a = {'client': 'b\n'}":              "line 1: a text has no end",
		"a = {'client': 1}\nb={'client': 2}": "there are 2 dicts with client, in lines 1, 2",
		"a = {'client': " + strings.Repeat("[", 100000): "values are nested too deep",
	} {
		_, err := pyliteral.FindDict(source, 0, "client")
		require.ErrorContains(t, err, want, source[:min(len(source), 60)])
	}
	const two = "a = {'client': 1}\n\nb = {'client': 2}"
	second, err := pyliteral.FindDict(two, 3, "client")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"client": 2}, second)
	_, err = pyliteral.FindDict(two, 2, "client")
	require.EqualError(t, err, "no dict with client begins in line 2; lines that one begins in: 1, 3")
	list := "a0 = [1, 1]\n"
	for i := range 40 {
		list += "a" + string(rune('A'+i)) + " = 1\n"
	}
	bomb := list + "a1 = [a0, a0]\na2 = [a1, a1]\na3 = [a2, a2]\na4=[a3,a3]\na5=[a4,a4]\na6=[a5,a5]\na7=[a6,a6]\na8=[a7,a7]\na9=[a8,a8]\nb1=[a9,a9]\nb2=[b1,b1]\nb3=[b2,b2]\nx = {'client': [b3, b3, b3]}"
	dict, err := pyliteral.FindDict(bomb, 0, "client")
	require.NoError(t, err)
	require.Contains(t, fmt.Sprintf("%v", dict["client"]), "0x") // a name that stays
}

// TestRemarks: what a source does to its dict later, and to resources, is said with its line; reading a member is not.
func TestRemarks(t *testing.T) {
	t.Parallel()
	const dict = "items = [1]\nkeys: Dict[str, int] = {}\nconfig: api.Config = {'client': keys, 'resources': items}\n"
	for text, want := range map[string]string{
		"":                                 "",
		"items.append(2)":                  "4: items is changed after its definition, which was read",
		"items += [2]":                     "4: items is changed after its definition, which was read",
		"keys['a']['b'] = 1":               "4: keys is changed after its definition, which was read",
		"config['resources'][0].update(x)": "4: config is changed after its definition, which was read",
		"if x: keys['a'] = 1":              "4: keys is changed after its definition, which was read",
		"if keys['a'] == 1: print(items.index(1), config['resources'])": "",
		"other['a'] = 1; other.append(2)":                               "",
		"@dlt.resource\ndef more():\n  pass":                            "4: the function more, a resource in Python",
		"@dlt.source\ndef more():\n  pass":                              "",
		"s.resources['a'].apply_hints(primary_key='id')":                "4: the call apply_hints(…), which changes or selects resources",
		"p.run(source(1),\n write_disposition='replace')":               "5: the write_disposition of the pipeline's run, which replaces that of resources",
		"f(write_disposition='replace')":                                "",
		"keys[":                                                         "",
	} {
		var got []string
		for _, remark := range pyliteral.Remarks(dict+text, 0, "client", "resources") {
			got = append(got, fmt.Sprintf("%d: %s", remark.Line, remark.Text))
		}
		require.Equal(t, want, strings.Join(got, "\n"), text)
	}
	require.Empty(t, pyliteral.Remarks("a = 1", 0, "client"))
}
