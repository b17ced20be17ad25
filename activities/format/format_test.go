package format_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"reprise/activities/format"
	"reprise/activities/memory"
	"reprise/activities/tooltest"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// read is what options make of content, as JSON.
func read(t *testing.T, fields map[string]any, content string) (string, error) {
	t.Helper()

	options, err := format.OptionsOf(tooltest.Input(fields)(t))
	if err != nil {
		return "", err
	}
	decoded, err := format.DecodeText(t.Context(), []byte(content), options.CharsetOf([]byte(content), ""))
	if err != nil {
		return "", err
	}
	v, err := options.Value(t.Context(), decoded, "it", 1<<20)
	if err != nil {
		return "", err
	}
	encoded, err := expression.Encode(v)
	require.NoError(t, err)
	return string(encoded), nil
}

func TestValues(t *testing.T) {
	t.Parallel()

	csv := func(keys map[string]any) map[string]any { return map[string]any{"csv": keys} }
	as := func(name string) map[string]any { return map[string]any{"format": name} }

	for name, test := range map[string]struct {
		fields  map[string]any
		content string
		want    string
	}{
		"json":                      {as("json"), ` {"n": 9007199254740993}`, `{"n":9007199254740993}`},
		"jsonl":                     {as("jsonl"), "{\"n\":1}\n\n [2]\r\n3", `[{"n":1},[2],3]`},
		"no lines":                  {as("jsonl"), "", `[]`},
		"csv":                       {as("csv"), "id,name\r\n1,\"Ana, \"\"B\"\"\"\r\n2,\"two\nlines\"\r\n", `[{"id":"1","name":"Ana, \"B\""},{"id":"2","name":"two\nlines"}]`},
		"a header alone":            {as("csv"), "id,name\n", `[]`},
		"nothing":                   {as("csv"), "", `[]`},
		"a byte order mark":         {as("csv"), "\ufeffid\n1", `[{"id":"1"}]`},
		"leading zeroes stay":       {as("csv"), "id\n007\n", `[{"id":"007"}]`},
		"text":                      {as("text"), "a\n", `"a\n"`},
		"semicolons":                {csv(map[string]any{"delimiter": ";"}), "a;b\n1,5;2", `[{"a":"1,5","b":"2"}]`},
		"tabs":                      {csv(map[string]any{"delimiter": "tab"}), "a\tb\n1\t2", `[{"a":"1","b":"2"}]`},
		"tabs as in other programs": {csv(map[string]any{"delimiter": `\t`}), "a\tb\n1\t2", `[{"a":"1","b":"2"}]`},
		"a delimiter of two bytes":  {csv(map[string]any{"delimiter": "§"}), "a§b\n1§2", `[{"a":"1","b":"2"}]`},
		"another quote":             {csv(map[string]any{"quote": "'"}), "a,b\n'1,''2',\"3\n", `[{"a":"1,'2","b":"\"3"}]`},
		"quote and delimiter swap":  {csv(map[string]any{"quote": "'", "delimiter": `"`}), "a\"b\n'1\"2'\"3\n", `[{"a":"1\"2","b":"3"}]`},
		"no quote":                  {csv(map[string]any{"quote": "none"}), "a,b\n\"1,5\" tube\n", `[{"a":"\"1","b":"5\" tube"}]`},
		"no quote, empty":           {csv(map[string]any{"quote": ""}), "a\n\"", `[{"a":"\""}]`},
		"no header":                 {csv(map[string]any{"header": false}), "1,2\n3,4", `[{"column1":"1","column2":"2"},{"column1":"3","column2":"4"}]`},
		"names":                     {csv(map[string]any{"header": []any{"a", "b"}}), "1,2", `[{"a":"1","b":"2"}]`},
		"empty is nil":              {csv(map[string]any{"null": ""}), "a,b\n,\"\"", `[{"a":null,"b":null}]`},
		"texts that are nil":        {csv(map[string]any{"null": []any{"NA", "-"}}), "a,b,c\nNA,-,", `[{"a":null,"b":null,"c":""}]`},
		"windows-1252":              {csv(map[string]any{"encoding": "windows-1252"}), "a\ncaf\xe9 \x80", `[{"a":"café €"}]`},
		"utf-16 with a mark":        {csv(map[string]any{"encoding": "utf-16"}), "\xff\xfea\x00\n\x00\xe9\x00", `[{"a":"é"}]`},
		"utf-16 without":            {csv(map[string]any{"encoding": "utf-16le"}), "a\x00\n\x00\xe9\x00", `[{"a":"é"}]`},
		"lines that end in CR":      {as("csv"), "id,a\r1,x\r2,\"y\rz\"\r", `[{"a":"x","id":"1"},{"a":"y\rz","id":"2"}]`},
		"CR CR LF":                  {as("csv"), "id,a\r\r\n1,x\r\r\n2,y\r\r\n", `[{"a":"x","id":"1"},{"a":"y","id":"2"}]`},
		"mixed line ends":           {as("csv"), "id,a\r\n1,x\n2,y\r3,z", `[{"a":"x","id":"1"},{"a":"y","id":"2"},{"a":"z","id":"3"}]`},
		"line breaks of a value":    {as("csv"), "id,a\n1,\"\r\nb\n\rc\"\r\n", `[{"a":"\r\nb\n\rc","id":"1"}]`},
		"empty lines":               {as("csv"), "\n\nid,a\n\n1,x\r\n\r\n", `[{"a":"x","id":"1"}]`},
		"one column":                {as("csv"), "a\nx\n\n\"\"\ny\n\n", `[{"a":"x"},{"a":""},{"a":""},{"a":"y"},{"a":""}]`},
		"one column, no end":        {as("csv"), "a\n\nx", `[{"a":""},{"a":"x"}]`},
		"one column, CR":            {as("csv"), "a\rx\r\ry\r", `[{"a":"x"},{"a":""},{"a":"y"}]`},
		"one column without names":  {csv(map[string]any{"header": false}), "\nx\n\n", `[{"column1":""},{"column1":"x"},{"column1":""}]`},
		"one column that is nil":    {csv(map[string]any{"header": []any{"a"}, "null": ""}), "x\n\ny\n", `[{"a":"x"},{"a":null},{"a":"y"}]`},
		"two columns without names": {csv(map[string]any{"header": false}), "\n1,2\n\n", `[{"column1":"1","column2":"2"}]`},
		"values with spaces":        {as("csv"), "a,b\n x , y\t\n", `[{"a":" x ","b":" y\t"}]`},
		"values with NUL":           {as("csv"), "a,b\nx\x00y,\"\x00\"\n", `[{"a":"x\u0000y","b":"\u0000"}]`},
		"a last value that is none": {as("csv"), "a,b\n1,", `[{"a":"1","b":""}]`},
		"sep=":                      {as("csv"), "sep=;\r\nid;a\r\n1;2,5\r\n", `[{"a":"2,5","id":"1"}]`},
		"sep= and a delimiter":      {csv(map[string]any{"delimiter": ";"}), "SEP=;\nid;a\n1;2\n", `[{"a":"2","id":"1"}]`},
		"sep= of a tab, after mark": {as("csv"), "\ufeffsep=\t\rid\ta\r1\t2\r", `[{"a":"2","id":"1"}]`},
		"sep= alone":                {as("csv"), "sep=;", `[]`},
		"a column named sep=":       {as("csv"), "\"sep=;\"\n1\n", `[{"sep=;":"1"}]`},
		"sep= in quotes":            {as("csv"), "\"sep=;\"\r\n\"id\";\"a\"\r\n1;2,5\r\n", `[{"a":"2,5","id":"1"}]`},
		"sep=, in quotes":           {as("csv"), "\"Sep=,\"\nid,a\n1,2\n", `[{"a":"2","id":"1"}]`},
		"sep= in quotes, alone":     {as("csv"), "\"sep=;\"", `[]`},
		"a column that begins so":   {as("csv"), "sep=ab\n1\n", `[{"sep=ab":"1"}]`},
		"no charset of UTF-8":       {map[string]any{"format": "json", "encoding": "iso-8859-1"}, `{"a":"é"}`, `{"a":"é"}`},
		"JSON in latin1":            {map[string]any{"format": "json", "encoding": "iso-8859-1"}, "{\"a\":\"\xe9\"}", `{"a":"é"}`},
		"text in Shift_JIS":         {map[string]any{"format": "text", "encoding": "shift_jis"}, "\x93\xfa\x96\x7b", `"日本"`},
		"text in ISO-2022-JP":       {map[string]any{"format": "text", "encoding": "iso-2022-jp"}, "\x1b$BF|K\\\x1b(B", `"日本"`},
		"utf-16, big end first":     {as("jsonl"), "\xfe\xff\x00[\x00]\x00\n", `[[]]`},
		"utf-16 of Chinese":         {as("text"), "\xff\xfe\x2d\x4e\x87\x65", `"中文"`},
		"utf-16 with a U+FFFD":      {as("text"), "\xff\xfea\x00\xfd\xffb\x00", "\"a\ufffdb\""},
		"utf-32":                    {as("text"), "\xff\xfe\x00\x00a\x00\x00\x00\x00\xf6\x01\x00", `"a😀"`},
		"said to be utf-16":         {map[string]any{"format": "text", "encoding": "utf-16"}, "aé", `"aé"`},
		"unpacked JSON":             {nil, `[{"a": 1}]`, `[{"a":1}]`},
		"unpacked JSON Lines":       {nil, "{\"a\":1}\n{\"a\":2}\n", `[{"a":1},{"a":2}]`},
		"unpacked text":             {nil, "{a}", `"{a}"`},
		"an unpacked number":        {nil, "12", `"12"`},
		"xml":                       {as("xml"), "<?xml version='1.0'?>\n<orders>\n <order id='07'>\n  <sku>a &amp; b</sku><n>1.50</n></order>\n <order id=\"8\"><sku/></order>\n</orders>\n", `{"orders":{"order":[{"@id":"07","n":"1.50","sku":"a & b"},{"@id":"8","sku":null}]}}`},
		"xml, one and lists":        {map[string]any{"xml": map[string]any{"lists": []any{"order"}}}, "<orders><order><id>1</id></order></orders>", `{"orders":{"order":[{"id":"1"}]}}`},
		"xml, lists that are nil":   {map[string]any{"xml": map[string]any{"lists": "order"}}, "<orders><order/></orders>", `{"orders":{"order":[null]}}`},
		"xml, none of a list":       {map[string]any{"xml": map[string]any{"lists": "orders/order"}}, "<orders/>", `{"orders":{"order":[]}}`},
		"xml, one of a list":        {map[string]any{"xml": map[string]any{"lists": "orders/order"}}, "<r><order/><orders n='1'><order>1</order></orders></r>", `{"r":{"order":null,"orders":{"@n":"1","order":["1"]}}}`},
		"xml, two of a list":        {map[string]any{"xml": map[string]any{"lists": "orders/order"}}, "<orders><order>1</order><order/></orders>", `{"orders":{"order":["1",null]}}`},
		"xml, a list at the top":    {map[string]any{"xml": map[string]any{"lists": "a"}}, "<a>x</a>", `{"a":["x"]}`},
		"xml, text and attributes":  {as("xml"), "<p currency='EUR'> 5 </p>", `{"p":{"#text":" 5 ","@currency":"EUR"}}`},
		"xml, mixed":                {as("xml"), "<p>a<b>c</b>d</p>", `{"p":{"#text":"ad","b":"c"}}`},
		"xml, spaces":               {as("xml"), "<p> <b> </b> </p>", `{"p":{"b":" "}}`},
		"xml, prefixes":             {as("xml"), "<s:a xmlns:s='urn:x'><s:b/><b>1</b></s:a>", `{"s:a":{"@xmlns:s":"urn:x","b":"1","s:b":null}}`},
		"xml, nil":                  {as("xml"), "<a><b xsi:nil='true'/><c xsi:nil='true' id='1'/><d xsi:nil='false'></d></a>", `{"a":{"b":null,"c":{"@id":"1","@xsi:nil":"true"},"d":{"@xsi:nil":"false"}}}`},
		"xml, CDATA and comments":   {as("xml"), "<!-- x --><a><![CDATA[<b>&amp;]]><!-- y -->&#233;</a>", `{"a":"<b>&amp;é"}`},
		"xml, an empty element":     {as("xml"), "<a></a>", `{"a":null}`},
		"xml, lines":                {as("xml"), "<a>x\r\ny</a>", `{"a":"x\ny"}`},
		"xml in latin1":             {as("xml"), "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xe9</a>", `{"a":"é"}`},
		"xml said to be in latin1":  {as("xml"), "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>é</a>", `{"a":"é"}`},
		"xml with a mark":           {as("xml"), "\ufeff<a>é</a>", `{"a":"é"}`},
		"xml in utf-16":             {as("xml"), "\xff\xfe<\x00a\x00>\x00\xe9\x00<\x00/\x00a\x00>\x00", `{"a":"é"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := read(t, test.fields, test.content)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// TestLines: what is wrong has its line.
// It passes maxDepth.
func TestLines(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		fields  map[string]any
		content string
		says    string
	}{
		"json":                {map[string]any{"format": "json"}, "{\n\"a\": 1,\n}", "(line 3)"},
		"jsonl":               {map[string]any{"format": "jsonl"}, "{}\n\n{\n", "line 3: not JSON"},
		"too few":             {map[string]any{"format": "csv"}, "a,b\n1,2\n\"x\ny\",2\n3\n", "line 5: 1 value, and there are 2 columns"},
		"too many":            {map[string]any{"csv": map[string]any{"header": []any{"a"}}}, "1,2", "line 1: 2 values, and there are 1 column"},
		"ragged, no names":    {map[string]any{"csv": map[string]any{"header": false}}, "1\n2,3", "line 2: 2 values"},
		"twice":               {map[string]any{"format": "csv"}, "a,a\n1,2", `line 1: the column "a" occurs twice`},
		"open quote":          {map[string]any{"format": "csv"}, "a\n1\n\"2\n3\n4\n", "line 3: a quoted value does not end"},
		"quote in a value":    {map[string]any{"format": "csv"}, "a\n5\" tube\n", "line 2: there is a quote within a value that does not start with one; set csv.quote"},
		"text behind a quote": {map[string]any{"format": "csv"}, "a,b\n\"1\"x,2\n", "line 2: text follows the closing quote of a value"},
		"open to the end":     {map[string]any{"format": "csv"}, "a,b\r1,\"x", "line 2: a quoted value does not end"},
		"names in UTF-16":     {map[string]any{"format": "csv"}, "\x00i\x00d\x00,\x00a\x00\n\x001\x00,\x002\x00\n", "line 1: every second character of the names is NUL, as in UTF-16; set encoding: utf-16be"},
		"sep= is the quote":   {map[string]any{"format": "csv"}, "sep=\"\na\n", "line 1: sep= names '\"', which quotes values; set csv.quote"},
		"not UTF-8":           {map[string]any{"format": "csv"}, "a\nb\ncaf\xe9\n", "byte 0xE9 at offset 7 (line 3) is not utf-8; set encoding to the charset of the text, such as windows-1252"},
		"JSON is not UTF-8":   {map[string]any{"format": "json"}, "{\"a\":\"\xe9\"}", "byte 0xE9 at offset 6 (line 1) is not utf-8; set encoding"},
		"text is not UTF-8":   {map[string]any{"format": "text"}, "\ufeffa\rb\r\xff", "byte 0xFF at offset 7 (line 3) is not utf-8"},
		"not what is said":    {map[string]any{"format": "jsonl", "encoding": "utf-8"}, "1\n\"\xfc\"", "byte 0xFC at offset 3 (line 2) is not utf-8"},
		"no Shift_JIS":        {map[string]any{"format": "text", "encoding": "shift_jis"}, "\x93\xfa\n\xff\xff", "byte 0xFF at offset 3 (line 2) is not shift_jis"},
		"no windows-1252":     {map[string]any{"csv": map[string]any{"encoding": "windows-1252"}}, "a\n\xe9\n\x81", "byte 0x81 at offset 4 (line 3) is not windows-1252"},
		"no ASCII":            {map[string]any{"format": "text", "encoding": "us-ascii"}, "a\xe9", "byte 0xE9 at offset 1 (line 1) is not us-ascii"},
		"half of utf-16":      {map[string]any{"format": "text"}, "\xff\xfea\x00b", "byte 0x62 at offset 4 (line 1) is not utf-16le"},
		"a lone surrogate":    {map[string]any{"format": "text"}, "\xff\xfe\n\x00\x00\xd8a\x00", "byte 0x00 at offset 4 (line 2) is not utf-16le"},
		"encodings differ":    {map[string]any{"encoding": "latin1", "csv": map[string]any{"encoding": "utf-8"}}, "", "encoding and csv.encoding differ"},
		"another encoding":    {map[string]any{"encoding": "klingon"}, "", `encoding is "klingon"; it must be the name of a charset`},
		"a key":               {map[string]any{"csv": map[string]any{"sep": ";"}}, "", `csv has no key "sep"; its keys are delimiter, quote, header, null or encoding`},
		"delimiter":           {map[string]any{"csv": map[string]any{"delimiter": "::"}}, "", `csv.delimiter is "::"; it must be one character, or tab`},
		"quote":               {map[string]any{"csv": map[string]any{"quote": "«"}}, "", `csv.quote is "«"; it must be one ASCII character, or none`},
		"one for both":        {map[string]any{"csv": map[string]any{"delimiter": `"`}}, "", "csv.delimiter and csv.quote are one character"},
		"no quote for both":   {map[string]any{"csv": map[string]any{"delimiter": `"`, "quote": "none"}}, "", "csv.delimiter and csv.quote are one character"},
		"header":              {map[string]any{"csv": map[string]any{"header": 1}}, "", "csv.header is a number; it must be true, false or a list of names"},
		"names twice":         {map[string]any{"csv": map[string]any{"header": []any{"a", "a"}}}, "", `csv.header has the name "a" twice`},
		"null":                {map[string]any{"csv": map[string]any{"null": map[string]any{}}}, "", "csv.null is a map; it must be text, or a list of texts"},
		"encoding":            {map[string]any{"csv": map[string]any{"encoding": "klingon"}}, "", `csv.encoding is "klingon"; it must be the name of a charset`},
		"csv of JSON":         {map[string]any{"format": "json", "csv": map[string]any{}}, "", "csv does not apply to format json"},
		"no such format":      {map[string]any{"format": "yaml"}, "", `format is "yaml"; it must be json, jsonl, csv, xml, parquet or text`},
		"no such packing":     {map[string]any{"compression": "rar"}, "", `compression is "rar"; it must be gzip, zstd, zip or none`},
		"a member of gzip":    {map[string]any{"compression": "gzip", "member": "a.csv"}, "", "member applies only to archives, and compression is gzip"},
		"a member's pattern":  {map[string]any{"member": "[a.csv"}, "", `member is "[a.csv"; it must be a name or a pattern`},
		"a key of xml":        {map[string]any{"xml": map[string]any{"list": "a"}}, "", `xml has no key "list"; its key is lists`},
		"lists of maps":       {map[string]any{"xml": map[string]any{"lists": []any{nil}}}, "", "xml.lists is a list; it must be the name of an element"},
		"xml of CSV":          {map[string]any{"format": "csv", "xml": map[string]any{}}, "", "xml does not apply to format csv"},
		"xml and csv":         {map[string]any{"csv": map[string]any{}, "xml": map[string]any{}}, "", "xml does not apply to format csv"},
		"an element is open":  {map[string]any{"format": "xml"}, "<a>\n<b>\n</b>\n", "line 4: the element a does not end"},
		"ended by another":    {map[string]any{"format": "xml"}, "<a>\n<b>\n</a>", "line 3: the element b is ended by </a>"},
		"two elements":        {map[string]any{"format": "xml"}, "<a/>\n<b/>", "line 2: a second element, b, follows the first"},
		"text outside":        {map[string]any{"format": "xml"}, "<a/>\nx", "line 2: there is text outside of the element"},
		"an end alone":        {map[string]any{"format": "xml"}, "</a>", "line 1: </a> ends nothing"},
		"attributes twice":    {map[string]any{"format": "xml"}, "<a x='1' x='2'/>", "line 1: the element a has the attribute x twice"},
		"no element":          {map[string]any{"format": "xml"}, "<?xml version='1.0'?>", "it has no element"},
		"a document type":     {map[string]any{"format": "xml"}, "<!DOCTYPE a [<!ENTITY b 'c'>]>\n<a>&b;</a>", "line 1: it has a document type declaration"},
		"an entity":           {map[string]any{"format": "xml"}, "<a>\n&b;</a>", "line 2: invalid character entity &b;"},
		"too deep":            {map[string]any{"format": "xml"}, strings.Repeat("<a>", 1001), "elements are nested more than 1000 deep"},
		"NUL in XML":          {map[string]any{"format": "xml"}, "<a>\x00</a>", "line 1: illegal character code"},
		"XML is not UTF-8":    {map[string]any{"format": "xml"}, "<a>\n\xe9</a>", "byte 0xE9 at offset 4 (line 2) is not utf-8"},
		"csv that is no map":  {map[string]any{"csv": ";"}, "", "csv must be a map"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := read(t, test.fields, test.content)
			require.ErrorContains(t, err, test.says)
		})
	}
}

// TestRowsComeOneByOne: whoever reads rows has them before the rest of the file is there.
func TestRowsComeOneByOne(t *testing.T) {
	t.Parallel()

	content := io.MultiReader(strings.NewReader("a\n1\n2\n"), iotest.ErrReader(io.ErrUnexpectedEOF))

	var got []any
	for row, err := range (format.CSVDialect{}).ReadRows(content) {
		if err != nil {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			break
		}
		got = append(got, row)
	}
	require.Equal(t, []any{map[string]any{"a": "1"}, map[string]any{"a": "2"}}, got)
}

func zstandard(t testing.TB, text string, options ...zstd.EOption) string {
	t.Helper()

	var b bytes.Buffer

	w, err := zstd.NewWriter(&b, options...)
	require.NoError(t, err)
	_, err = io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func TestUnpacks(t *testing.T) {
	t.Parallel()

	text := strings.Repeat("row\n", 1000)

	for name, test := range map[string]struct {
		compression, content string
		unpacked             bool // by its sender's encoding already
		packed               bool
		want, says           string
	}{
		"gzip":                     {"", tooltest.Gzip(text), false, true, text, ""},
		"zstd":                     {"", zstandard(t, text), false, true, text, ""},
		"gzip that is said":        {"gzip", tooltest.Gzip(text), false, true, text, ""},
		"zstd that is said":        {"zstd", zstandard(t, text), false, true, text, ""},
		"members":                  {"", tooltest.Gzip("a") + tooltest.Gzip("b"), false, true, "ab", ""},
		"frames":                   {"", zstandard(t, "a") + zstandard(t, "b"), false, true, "ab", ""},
		"none":                     {"none", tooltest.Gzip("a"), false, false, tooltest.Gzip("a"), ""},
		"not packed":               {"", "text", false, false, "text", ""},
		"empty":                    {"gzip", "", false, false, "", ""},
		"unpacked on its way":      {"gzip", "text", true, false, "text", ""},
		"not what is said":         {"gzip", zstandard(t, "a"), false, false, "", "the bytes are not gzip"},
		"text that is no zstd":     {"zstd", "text", false, false, "", "the bytes are not zstd"},
		"torn gzip":                {"", tooltest.Gzip(text)[:15], false, true, "", "unexpected EOF"},
		"torn zstd":                {"", zstandard(t, text)[:15], false, true, "", "unexpected EOF"},
		"a bomb of gzip":           {"", tooltest.Gzip(strings.Repeat("a", 5<<20)), false, true, "", memory.ErrTooLarge.Error()},
		"a bomb of zstd":           {"", zstandard(t, strings.Repeat("a", 5<<20)), false, true, "", memory.ErrTooLarge.Error()},
		"zstd with a large window": {"", zstandard(t, strings.Repeat("a", 5<<20), zstd.WithWindowSize(64<<20)), false, true, "", "window"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			const limit = 1 << 20
			content, err := format.Options{Compression: test.compression}.Unpack(t.Context(), iotest.OneByteReader(strings.NewReader(test.content)), test.unpacked, limit)
			var got []byte
			if err == nil {
				require.Equal(t, test.packed, content.Packed)
				got, err = memory.ReadAll(t.Context(), content, limit, limit)
				_ = content.Close() // says again what was torn
			}
			if test.says != "" {
				require.ErrorContains(t, err, test.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
		})
	}
}

// TestArchives: one member of an archive is read, from a body and from a file, and what is ambiguous is an error that names the members.
func TestArchives(t *testing.T) {
	t.Parallel()
	one := tooltest.Zip(t, [2]string{"data/", ""}, [2]string{"data/orders.csv", "id\n1\n"}, [2]string{"__MACOSX/data/._orders.csv", "x"})
	two := tooltest.Zip(t, [2]string{"a.csv", "a"}, [2]string{"b/b.csv", "b"}, [2]string{"readme.txt", "r"})
	many := make([][2]string, 12)
	for i := range many {
		many[i] = [2]string{fmt.Sprintf("%02d.csv", i), "x"}
	}
	for name, test := range map[string]struct {
		compression, member, content string
		from, want, says             string
	}{
		"the only one":           {"", "", one, "data/orders.csv", "id\n1\n", ""},
		"said":                   {"zip", "", one, "data/orders.csv", "id\n1\n", ""},
		"by its name":            {"", "a.csv", two, "a.csv", "a", ""},
		"by its last part":       {"", "b.csv", two, "b/b.csv", "b", ""},
		"by its path":            {"", "b/*.csv", two, "b/b.csv", "b", ""},
		"by a pattern":           {"", "*.txt", two, "readme.txt", "r", ""},
		"none is named":          {"", "", two, "", "", `it has 3 files, "a.csv", "b/b.csv", "readme.txt"; name one with member`},
		"several are named":      {"", "*.csv", two, "", "", `member "*.csv" names 2 of its files, "a.csv", "b/b.csv"; name one`},
		"none matches":           {"", "*.xml", two, "", "", `none of its files is named "*.xml"; it has "a.csv", "b/b.csv", "readme.txt"`},
		"many":                   {"", "", tooltest.Zip(t, many...), "", "", `"09.csv", 2 more; name one`},
		"empty":                  {"zip", "", tooltest.Zip(t), "", "", "the bytes are not zip"},
		"folders alone":          {"", "", tooltest.Zip(t, [2]string{"a/", ""}), "", "", "it has no files"},
		"cut short":              {"", "", one[:len(one)-10], "", "", "the archive cannot be read: zip: not a valid zip file"},
		"a member of no archive": {"", "a.csv", "text", "", "", `member is "a.csv", and the bytes are not zip`},
		"no archive":             {"zip", "", "text", "", "", "the bytes are not zip"},
		"as it is":               {"none", "", one, "", one, ""},
		"changed":                {"", "", withDirectory(tooltest.Zip(t, [2]string{"a", "b"}), checksumByte), "a", "", "checksum"},
		"encrypted":              {"", "", withDirectory(tooltest.Zip(t, [2]string{"a", "b"}), flagsByte), "", "", `"a" is encrypted`},
		"a bomb":                 {"", "", tooltest.Zip(t, [2]string{"a", strings.Repeat("a", 5<<20)}), "a", "", memory.ErrTooLarge.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit = 1 << 20
			name := filepath.Join(t.TempDir(), "archive")
			require.NoError(t, os.WriteFile(name, []byte(test.content), 0o600))
			file, err := os.Open(name)
			require.NoError(t, err)
			defer file.Close()
			for _, body := range []io.Reader{iotest.OneByteReader(strings.NewReader(test.content)), file} {
				content, err := format.Options{Compression: test.compression, Member: test.member}.Unpack(t.Context(), body, false, limit)
				var got []byte
				if err == nil {
					require.Equal(t, test.from, content.Member)
					got, err = memory.ReadAll(t.Context(), content, limit, limit)
				}
				if test.says != "" {
					require.ErrorContains(t, err, test.says)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, test.want, string(got))
			}
		})
	}
	_, err := format.Options{}.Unpack(t.Context(), strings.NewReader(tooltest.Zip(t, [2]string{"a", rand.Text() + rand.Text()})), false, 20)
	require.ErrorIs(t, err, memory.ErrTooLarge)
}

// The places of an entry in the directory of an archive (APPNOTE 4.3.12).
const (
	flagsByte    = 8
	checksumByte = 16
)

// withDirectory changes the lowest bit of a byte of the first entry of an archive's directory.
func withDirectory(archive string, at int) string {
	bytes := []byte(archive)
	bytes[strings.Index(archive, "PK\x01\x02")+at] ^= 1
	return string(bytes)
}

func TestByName(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{
		"a.json": "json", "a.JSON.gz": "json+", "x/a.ndjson.zst": "jsonl+", "a.jsonl": "jsonl", "a.csv.gzip": "csv+", "a.txt": "text", "a": "", "a.gz": "+", "a.xml": "xml", "a.csv.zip": "csv+", "a.zip": "+", "a.xlsx": "",
	} {
		got, packed := format.FormatOfName(name)
		if packed {
			got += "+"
		}
		require.Equal(t, want, got, name)
	}
}

func TestByType(t *testing.T) {
	t.Parallel()

	for mediaType, want := range map[string]string{
		"application/json": "json", "application/vnd.api+json": "json", "application/x-ndjson": "jsonl", "text/csv": "csv",
		"text/plain": "text", "application/xml": "xml", "text/xml": "xml", "application/atom+xml": "xml", "application/xhtml+xml": "text", "image/svg+xml": "text", "application/zip": "+", "": "", "application/octet-stream": "", "application/gzip": "+", "application/zstd": "+",
	} {
		got, packed := format.FormatOfType(mediaType)
		if packed {
			got += "+"
		}
		require.Equal(t, want, got, mediaType)
	}
}

// TestMediaType: content types are read as servers write them.
func TestMediaType(t *testing.T) {
	t.Parallel()

	for written, want := range map[string][2]string{
		"":                                    {},
		"text/csv":                            {"text/csv", ""},
		"Application/JSON; charset=\"UTF-8\"": {"application/json", "UTF-8"},
		"text/plain;charset=utf-8;charset=latin1":      {"text/plain", "utf-8"},
		"application/json; charset=utf-8, utf-8":       {"application/json", "utf-8"},
		"application/json, application/json":           {"application/json", ""},
		"application/json; charset":                    {"application/json", ""},
		"application/hal+json;v=1; CHARSET = 'latin1'": {"application/hal+json", "latin1"},
		";;;": {},
	} {
		mediaType, charset := format.MediaType(written)
		require.Equal(t, want, [2]string{mediaType, charset}, written)
	}
}

// textSource is a source that lies in memory.
type textSource struct{ *strings.Reader }

func (textSource) Close() error { return nil }

// TestASCIIHasNoMore: a byte beyond ASCII is an error of what is said to be ASCII, however its name is written, read whole or row by row.
func TestASCIIHasNoMore(t *testing.T) {
	t.Parallel()
	const content = "a\ncaf\xe9\n"
	for _, charset := range []string{"us-ascii", "US-ASCII", "ASCII"} {
		_, err := format.DecodeText(t.Context(), []byte(content), charset)
		require.ErrorContains(t, err, "byte 0xE9 at offset 5 (line 2)")
		source := format.RowSource{Content: textSource{strings.NewReader(content)}, Size: int64(len(content)), What: "it", Format: format.CSV, Charset: charset}
		err = nil
		for _, wrong := range source.ReadRows(t.Context(), format.Options{}, 1<<20, nil) {
			err = wrong
		}
		require.ErrorContains(t, err, "byte 0xE9 at offset 5 (line 2)", charset)
	}
}

// TestOddRows: a row whose values are the names of its columns is a header, and one without values a line of delimiters, unless it has one
// column, where that may be a value.
func TestOddRows(t *testing.T) {
	t.Parallel()
	row := func(id, name any) any { return map[string]any{"id": id, "name": name} }
	notes := format.OddRows([]any{row("1", "a"), row("id", "name"), row("id", "name")}, "it", 10)
	require.Len(t, notes, 1)
	require.Contains(t, notes[0], "row 12 of it has the names of the columns as its values")
	notes = format.OddRows([]any{row("1", ""), row("", nil), row("", "")}, "it", 10)
	require.Equal(t, []string{"row 12 of it has no values, and is read as a row; it is probably a line of delimiters from a spreadsheet, so leave it out"}, notes)
	require.Len(t, format.OddRows([]any{row("id", "name"), row("", "")}, "it", 0), 2)
	for _, rows := range []any{[]any{map[string]any{"id": ""}}, []any{row("id", "a"), row("id", nil), row("name", "id")}, []any{map[string]any{"id": "id"}}, []any{map[string]any{}}, []any{"id"}, nil} {
		require.Empty(t, format.OddRows(rows, "it", 0), rows)
	}
}

// TestLoneElements: an element that is a list beside one where it is a value would make a column of texts and JSON.
func TestLoneElements(t *testing.T) {
	t.Parallel()
	read := func(content string, lists ...string) []string {
		value, err := format.Options{Format: format.XML, Lists: lists}.Value(t.Context(), []byte(content), "it", 1<<20)
		require.NoError(t, err)
		return format.LoneElements(value, "it")
	}
	const mixed = "<r><i><t>a</t></i><i><t>a</t><t>b</t></i></r>"
	require.Len(t, read(mixed), 1)
	require.Contains(t, read(mixed)[0], "xml: {lists: [i/t]}")
	require.Empty(t, read(mixed, "i/t"), "as it says")
	require.Empty(t, read(mixed, "t"))
	require.Empty(t, read("<r><i><t>a</t></i><i/><i><t/></i></r>"), "values, and none")
	require.Empty(t, read("<r><i><t>a</t><t>b</t></i><i><t>a</t><t>b</t></i></r>"), "lists")
	require.Empty(t, read("<r><i><t>a</t></i><k><t>a</t><t>b</t></k></r>"), "of other elements")
	require.Len(t, read("<r><i><t><v>1</v></t></i><i><t><v>1</v></t><t><v>1</v><v>2</v></t></i></r>"), 2, "at each level")
}

// TestArchivesRowByRow: where nothing else says a format, the name of the member does, as for an archive that is read whole.
func TestArchivesRowByRow(t *testing.T) {
	t.Parallel()
	read := func(content string, o format.Options) (rows []any, err error) {
		source := format.RowSource{Content: textSource{strings.NewReader(content)}, Size: int64(len(content)), What: "it", Kind: interpreter.KindTool, Class: interpreter.ClassFinal}
		for row, wrong := range source.ReadRows(t.Context(), o, 1<<20, nil) {
			if wrong != nil {
				return rows, wrong
			}
			rows = append(rows, row.Value)
		}
		return rows, nil
	}
	archive := tooltest.Zip(t, [2]string{"data/orders.csv", "id,name\n1,a\n"}, [2]string{"data/items.jsonl", "{\"id\":\"2\"}\n"}, [2]string{"readme.txt", "r"}, [2]string{"other", "o"})
	for member, want := range map[string]any{
		"*.csv":       []any{map[string]any{"id": "1", "name": "a"}},
		"items.jsonl": []any{map[string]any{"id": "2"}},
	} {
		rows, err := read(archive, format.Options{Member: member})
		require.NoError(t, err, member)
		require.Equal(t, want, any(rows), member)
	}
	for member, says := range map[string]string{
		"readme.txt": "its format is text; set format to",
		"other":      "its format is not known; set format to",
		"":           "it cannot be unpacked: the archive cannot be read: it has 4 files",
		"none":       `it cannot be unpacked: the archive cannot be read: none of its files is named "none"`,
	} {
		_, err := read(archive, format.Options{Member: member})
		require.ErrorContains(t, err, says, member)
	}
	_, err := read(archive[:len(archive)-10], format.Options{Member: "*.csv"})
	require.ErrorContains(t, err, "it cannot be unpacked: the archive cannot be read: zip: not a valid zip file")
	_, err = read("id\n1\n", format.Options{})
	require.ErrorContains(t, err, "its format is not known; set format to")
}
