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
