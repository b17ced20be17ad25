package expression_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// TestParseTime: forms in which programs and databases write one moment, and those that name none.
func TestParseTime(t *testing.T) {
	t.Parallel()
	for want, forms := range map[string][]string{
		"2024-01-01T08:00:00Z": {
			"2024-01-01T08:00:00Z", "2024-01-01T10:00:00+02:00", "2024-01-01T10:00:00+0200", "2024-01-01T10:00:00+02", "2024-01-01 10:00:00+02",
			"2024-01-01 08:00:00+00", "2024-01-01 10:00:00 +0200", "2024-01-01 10:00:00 +02:00", "2024-01-01 08:00:00 UTC", "2024-01-01 08:00:00",
			"2024-01-01T08:00Z", "2024-01-01 08:00Z", "2024-01-01T10:00+02", "2024-01-01T10:00+0200", "2024-01-01T10:00+02:00", "2024-01-01T08:00",
			"20240101T080000Z", "20240101T100000+0200", "20240101T100000+02", "20240101T0800Z", "20240101T080000", "2024-01-01T03:00:00-05",
			"2024-01-01T08:00:00.000Z", "2024-01-01 10:00:00.0+02", "2024-01-01  08:00:00", "2024-01-01  10:00  +02:00", "Mon, 01 Jan 2024 08:00:00 GMT", "Mon Jan  1 08:00:00 2024",
		},
		"2024-01-01T08:00:00.123456Z": {"2024-01-01 10:00:00.123456+02", "20240101T100000.123456+02", "2024-01-01T10:00:00,123456+02"},
		"2024-01-01T04:30:00Z":        {"2024-01-01 10:00:00+05:30", "2024-01-01T10:00:00+0530"},
		"1880-01-01T00:00:00Z":        {"1880-01-01 00:53:28+00:53:28"}, // PostgreSQL, of Berlin
		"2024-01-01T00:00:00Z":        {"2024-01-01"},
		"": {
			"", "yesterday", "20240101", "2024-01", "2024-01-01T10", "2024-01-01T10:00:00+2", "2024-01-01T10:00:00+020", "2024-01-01T10:00:00 CET",
			"2024-01-01T25:00:00Z", "2024-13-01T10:00:00+02", "2024-01-01 10:00:00+02 BC", "2024-01-01T10:00:00+02:00:00:00", "2024-01-01T", "20240101T",
			"2024-01-01T10:00:00ZZ", "1704103200", "01/02/2024 10:00", "2024-01-01T100000Z",
		},
	} {
		for _, form := range forms {
			got := ""
			if at, ok := expression.ParseTime(form); ok {
				got = at.UTC().Format(time.RFC3339Nano)
			}
			require.Equal(t, want, got, form)
		}
	}
}

// BenchmarkParseTime measures what a form costs that is not RFC 3339.
func BenchmarkParseTime(b *testing.B) {
	for _, form := range []string{"2024-01-01T10:00:00Z", "2024-01-01 10:00:00+00", "20240101T100000Z", "yesterday"} {
		b.Run(form, func(b *testing.B) {
			for b.Loop() {
				expression.ParseTime(form)
			}
		})
	}
}
