package playtest

import (
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"reprise/interpreter/lists"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`

	took float64
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",cdata"`
}

// WriteJUnit writes reports as JUnit XML, a suite for each file.
func WriteJUnit(w io.Writer, reports []*Report) error {
	all := junitSuites{}
	total := 0.0
	for _, report := range reports {
		name := report.Suite.Path
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != name {
			all.Suites = append(all.Suites, junitSuite{Name: name})
		}
		suite := &all.Suites[len(all.Suites)-1]
		one := junitCase{
			Name: report.Test.Name, Class: strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), File: name, Line: report.Test.Pos.Line,
			Time: formatSeconds(report.Took.Seconds()),
		}
		if !report.Passed() {
			texts := lists.Map(report.Failures, func(failure Failure) string { return failure.Text(name) })
			first, _, _ := strings.Cut(texts[0], "\n")
			one.Failure = &junitFailure{Message: first, Text: strings.Join(texts, "\n")}
			suite.Failures++
			all.Failures++
		}
		suite.Tests++
		all.Tests++
		suite.took += report.Took.Seconds()
		suite.Cases = append(suite.Cases, one)
	}
	for i := range all.Suites {
		all.Suites[i].Time = formatSeconds(all.Suites[i].took)
		total += all.Suites[i].took
	}
	all.Time = formatSeconds(total)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return fmt.Errorf("write JUnit's XML: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func formatSeconds(n float64) string { return fmt.Sprintf("%.3f", n) }
