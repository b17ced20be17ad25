package author

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"reprise/internal/base/build"
	"reprise/internal/base/terminal"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
	"reprise/starter/load"
)

// The formats of `validate --output` that other systems read.
const (
	outputGitHub = "github"
	outputSARIF  = "sarif"
)

// writeGitHub writes problems as workflow commands of GitHub Actions, which shows each one at its line.
func writeGitHub(w io.Writer, found source.Diagnostics) error {
	for _, d := range found {
		_, err := fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", load.SeverityName(d),
			githubProperty(filepath.ToSlash(d.File)), max(d.Pos.Line, 1), max(d.Pos.Column, 1), githubProperty(d.Code), githubText(withNote(d)))
		if err != nil {
			return fmt.Errorf("write problems: %w", err)
		}
	}
	return nil
}

func withNote(d source.Diagnostic) string {
	if d.Note == "" {
		return d.Message
	}
	return d.Message + "\n" + d.Note
}

func githubText(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

func githubProperty(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubText(text))
}

// The part of SARIF 2.1.0 that problems use.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
		Fixes     []sarifFix      `json:"fixes,omitempty"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPlace `json:"physicalLocation"`
	}
	sarifPlace struct {
		ArtifactLocation sarifFile    `json:"artifactLocation"`
		Region           *sarifRegion `json:"region,omitempty"`
	}
	sarifFile struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
		EndColumn   int `json:"endColumn,omitempty"`
	}
	sarifFix struct {
		Description     sarifText     `json:"description"`
		ArtifactChanges []sarifChange `json:"artifactChanges"`
	}
	sarifChange struct {
		ArtifactLocation sarifFile          `json:"artifactLocation"`
		Replacements     []sarifReplacement `json:"replacements"`
	}
	sarifReplacement struct {
		DeletedRegion   sarifRegion `json:"deletedRegion"`
		InsertedContent sarifText   `json:"insertedContent"`
	}
)

const sarifSchema = "https://json.schemastore.org/sarif-2.1.0.json"

// writeSARIF writes problems as SARIF 2.1.0, with their rules and available fixes.
func writeSARIF(w io.Writer, found source.Diagnostics, files map[string]*source.File) error {
	run := sarifRun{
		Tool: sarifTool{Driver: sarifDriver{Name: "reprise", Version: build.Read().Reprise, Rules: []sarifRule{}}}, ColumnKind: "unicodeCodePoints", Results: []sarifResult{},
	}
	indexes := map[string]int{}
	for _, rule := range check.DiagnosticCodes() {
		indexes[rule.Code] = len(run.Tool.Driver.Rules)
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: rule.Code, ShortDescription: sarifText{rule.Meaning}})
	}
	for _, d := range found {
		index, known := indexes[d.Code]
		if !known {
			index = len(run.Tool.Driver.Rules)
			indexes[d.Code] = index
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: d.Code, ShortDescription: sarifText{d.Code}})
		}
		run.Results = append(run.Results, sarifOf(d, index, files[d.File]))
	}
	return terminal.PrintJSON(w, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

func sarifOf(d source.Diagnostic, rule int, file *source.File) sarifResult {
	where := sarifPlace{ArtifactLocation: sarifFile{URI: filepath.ToSlash(d.File)}}
	if !d.Pos.IsZero() {
		where.Region = &sarifRegion{StartLine: d.Pos.Line, StartColumn: d.Pos.Column}
	}
	result := sarifResult{RuleID: d.Code, RuleIndex: rule, Level: load.SeverityName(d), Message: sarifText{withNote(d)}, Locations: []sarifLocation{{where}}}
	if file == nil {
		return result
	}
	if edit, ok := file.EditFor(d); ok {
		end := edit.At.Column + utf8.RuneCountInString(d.Fix.Old)
		result.Fixes = []sarifFix{{
			Description: sarifText{fmt.Sprintf("%s instead of %s", edit.New, d.Fix.Old)},
			ArtifactChanges: []sarifChange{{ArtifactLocation: where.ArtifactLocation, Replacements: []sarifReplacement{{
				DeletedRegion: sarifRegion{StartLine: edit.At.Line, StartColumn: edit.At.Column, EndColumn: end}, InsertedContent: sarifText{edit.New},
			}}}},
		}}
	}
	return result
}
