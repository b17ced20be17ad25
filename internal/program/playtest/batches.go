package playtest

import (
	"slices"
	"sync"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// fileAnswers are answers of sources of tool file. An answer is the whole file, which is read in pages of the batch that the source
// names.
type fileAnswers struct {
	mu    sync.Mutex
	files map[string]fileAnswer // by the name of the call
}

// fileAnswer is an answer with more rows than a page.
type fileAnswer struct {
	rows []any
	most int // of a page
}

// firstPage returns the first page of an answer.
func (f *fileAnswers) firstPage(who caller, in interpreter.ToolInput, answer any) interpreter.ToolResult {
	most, isNumber := in.Fields[playbook.FieldBatch].Data.(int)
	rows := answer
	if in.Batch != nil {
		for _, name := range in.Batch.Path {
			rows = expression.MapMember(rows, name)
		}
	}
	list, isList := rows.([]any)
	if in.Batch == nil || !isNumber || most < 1 || !isList {
		return interpreter.ToolResult{Data: expression.Of(answer)}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files == nil {
		f.files = map[string]fileAnswer{}
	}
	file := fileAnswer{rows: list, most: most}
	f.files[who.displayName()] = file
	return file.page(in, 0)
}

// nextPage returns the page of an answer behind the first one; false for an attempt that begins.
func (f *fileAnswers) nextPage(who caller, in interpreter.ToolInput) (interpreter.ToolResult, bool) {
	if in.Batch == nil || in.Batch.After == nil {
		return interpreter.ToolResult{}, false
	}
	f.mu.Lock()
	file, known := f.files[who.displayName()]
	f.mu.Unlock()
	if !known { // a file of the test
		return interpreter.ToolResult{}, false
	}
	return file.page(in, int(in.Batch.After.Rows)), true
}

// page returns the page behind so many rows.
func (f fileAnswer) page(in interpreter.ToolInput, before int) (result interpreter.ToolResult) {
	end := min(before+f.most, len(f.rows))
	page := any(f.rows[before:end:end])
	for _, name := range slices.Backward(in.Batch.Path) {
		page = map[string]any{name: page}
	}
	if result.Data = expression.Of(page); end < len(f.rows) {
		result.Meta.Next = &interpreter.SourcePlace{Rows: int64(end)}
	}
	return result
}
