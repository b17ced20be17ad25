package attempt

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"reprise/activities/tool"
	"reprise/interpreter"
)

// shapeRows returns the attempt of a sink that is given its rows in their shape.
func shapeRows(run Func) Func {
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		if in.Shape == nil {
			return run(ctx, in)
		}
		shaped, notes, err := WithShapedRows(ctx, in)
		if err != nil {
			return interpreter.ToolResult{}, err
		}
		result, err := run(ctx, shaped)
		result.Meta.Notes = append(notes, result.Meta.Notes...)
		return result, err
	}
}

// WithShapedRows returns the input of a sink with its rows in their shape, and the notes about them.
func WithShapedRows(ctx context.Context, in interpreter.ToolInput) (shaped interpreter.ToolInput, notes []string, err error) {
	if in.Shape == nil {
		return in, nil, nil
	}
	reshape := in.Reshaped
	if reshape == nil {
		reshape = func() (interpreter.ShapedRows, error) { return ReshapeRows(ctx, in) }
	}
	rows, err := reshape()
	switch {
	case err != nil && tool.IsContextError(err):
		return in, nil, err
	case err != nil:
		return in, nil, &tool.Error{
			Kind: interpreter.KindExpression, Class: interpreter.ClassFinal, Final: true, Message: "sink " + in.Place + ": " + err.Error(),
		}
	}
	return in.WithRows(rows), rows.Notes, nil
}

// ReshapeRows applies fields and exclude to the rows of an attempt, on several processors. The error is from
// [interpreter.ToolInput.ShapeRows], or of ctx.
func ReshapeRows(ctx context.Context, in interpreter.ToolInput) (interpreter.ShapedRows, error) {
	return in.ShapeRows(func(rows int, part func(from, to int) ([]string, error)) ([]string, error) {
		return shapeInParts(ctx, rows, part)
	})
}

// The parts of a list that is brought into shape: rowsOfPart are some milliseconds of work, and maxShapers leaves processors to others.
const (
	rowsOfPart = 2000
	// maxShapers bounds the goroutines that shape the rows of one list, so that a large list
	// leaves processors to other attempts.
	maxShapers = 4
)

// shapeInParts makes the parts of a piece of work; see [interpreter.Parts].
func shapeInParts(ctx context.Context, rows int, part func(from, to int) ([]string, error)) ([]string, error) {
	parts := (rows + rowsOfPart - 1) / rowsOfPart
	notes, errs := make([][]string, parts), make([]error, parts)
	var next atomic.Int64
	var failed atomic.Bool
	work := func() {
		for !failed.Load() {
			at := int(next.Add(1)) - 1
			if at >= parts {
				return
			}
			if errs[at] = ctx.Err(); errs[at] == nil {
				notes[at], errs[at] = part(at*rowsOfPart, min((at+1)*rowsOfPart, rows))
			}
			if errs[at] != nil {
				failed.Store(true)
			}
		}
	}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), maxShapers, parts) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
	if at := slices.IndexFunc(errs, func(err error) bool { return err != nil }); at >= 0 {
		return nil, errs[at]
	}
	return slices.Concat(notes...), nil
}
