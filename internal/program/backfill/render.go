package backfill

import (
	"fmt"
	"strings"

	"reprise/internal/base/terminal"
	"reprise/interpreter/partition"
)

// signs are the marks of statuses in a matrix.
var signs = map[partition.Status]string{
	partition.Done: "#", partition.Running: ">", partition.Failed: "x", partition.Stale: "s", partition.Missing: ".",
}

const (
	chunk           = 50 // partitions in a line, where the calendar gives none
	labelWidth      = 20
	shownPartitions = 10 // partitions that are named
)

// Text returns the matrix within 80 columns: a line for each day, month, year or decade.
func (m *Matrix) Text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", m.Playbook, m.Tally())
	for _, line := range m.Lines() {
		fmt.Fprintf(&text, "%-*s  %s", m.labelWidth(), terminal.CellText(line.Label, labelWidth), strings.Repeat(" ", line.Indent))
		for _, row := range line.Rows {
			text.WriteString(signs[row.Status])
		}
		text.WriteString("\n")
	}
	var legend []string
	for _, status := range partition.Statuses {
		if m.Counts[status] > 0 {
			legend = append(legend, signs[status]+" "+string(status))
		}
	}
	if len(legend) > 0 {
		text.WriteString(strings.Join(legend, "   ") + "\n")
	}
	if ranges, more := m.Ranges(partition.Missing, shownPartitions); len(ranges) > 0 && m.Counts[partition.Missing] < len(m.Rows) {
		writeList(&text, partition.Missing, ranges, more)
	}
	m.writeNames(&text, partition.Failed)
	m.writeNames(&text, partition.Running)
	return text.String()
}

// CalendarLine is a line of the calendar: the partitions of a day, month, year or decade.
type CalendarLine struct {
	Label string
	// Indent is the number of partitions missing at the beginning of the line.
	Indent int
	Rows   []Row
}

// Lines returns the calendar, earliest first.
func (m *Matrix) Lines() (lines []CalendarLine) {
	for i, row := range m.Rows {
		label, indent := m.lineLabel(i, row)
		if last := len(lines) - 1; last < 0 || lines[last].Label != label {
			lines = append(lines, CalendarLine{Label: label, Indent: indent})
		}
		last := &lines[len(lines)-1]
		last.Rows = append(last.Rows, row)
	}
	return lines
}

// Columns returns the maximum number of partitions on a line of the calendar.
func (m *Matrix) Columns() int {
	switch m.unit {
	case partition.Hour:
		return 25 // a day on which clocks are set back
	case partition.Day:
		return 31
	case partition.Week:
		return 53
	case partition.Month:
		return 12
	case partition.Year:
		return 10
	}
	return chunk
}

// Tally describes how many partitions have each status.
func (m *Matrix) Tally() string {
	text := terminal.Count(len(m.Rows), "partition")
	for _, status := range partition.Statuses {
		if n := m.Counts[status]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, status)
		}
	}
	return text
}

// lineLabel returns the label of a partition's line, and the partition's position on it.
func (m *Matrix) lineLabel(i int, row Row) (label string, indent int) {
	switch m.unit {
	case partition.Hour:
		label, indent = row.Key[:len("2024-01-31")], row.Start.Hour()
	case partition.Day:
		label, indent = row.Key[:len("2024-01")], row.Start.Day()-1
	case partition.Week:
		_, week := row.Start.ISOWeek()
		label, indent = row.Key[:len("2024")], week-1
	case partition.Month:
		label, indent = row.Key[:len("2024")], int(row.Start.Month())-1
	case partition.Year:
		label, indent = row.Key[:len("202")]+"0s", row.Start.Year()%10
	default:
		label = m.Rows[i-i%chunk].Key
	}
	return label, indent
}

// Ranges returns the partitions with a status. Consecutive ones are written as "FIRST to LAST". It returns at most
// `most` ranges; more is how many it leaves out.
func (m *Matrix) Ranges(status partition.Status, most int) (ranges []string, more int) {
	for i := 0; i < len(m.Rows); i++ {
		if m.Rows[i].Status != status {
			continue
		}
		first := i
		for i+1 < len(m.Rows) && m.Rows[i+1].Status == status && !m.Rows[i+1].Start.IsZero() {
			i++
		}
		switch {
		case len(ranges) == most:
			more++
		case first == i:
			ranges = append(ranges, m.Rows[i].Key)
		default:
			ranges = append(ranges, m.Rows[first].Key+" to "+m.Rows[i].Key)
		}
	}
	return ranges, more
}

func (m *Matrix) labelWidth() int {
	switch m.unit {
	case partition.Hour:
		return len("2024-01-31")
	case "":
		return labelWidth
	}
	return len("2024-01")
}

// writeNames writes the names of the first partitions with a status.
func (m *Matrix) writeNames(text *strings.Builder, status partition.Status) {
	var named []string
	for _, row := range m.Rows {
		if row.Status != status || len(named) == shownPartitions {
			continue
		}
		one := row.Key
		if row.Run != "" {
			one += " (" + row.Run + ")"
		}
		named = append(named, one)
	}
	if len(named) > 0 {
		writeList(text, status, named, m.Counts[status]-len(named))
	}
}

// writeList writes the partitions with a status, and how many more there are.
func writeList(text *strings.Builder, status partition.Status, named []string, more int) {
	line := string(status) + ": " + strings.Join(named, ", ")
	if more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	const width = 80
	terminal.WriteWrapped(text, line, width)
}
