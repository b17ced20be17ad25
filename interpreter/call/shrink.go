package call

import (
	"fmt"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// Shrink limits the output to most bytes: a call whose result exceeds its share fails with an error that says so,
// and an unfinished call starts again from its beginning. The calls are changed in place.
func (o DriveOutput) Shrink(step *playbook.Step, most int) DriveOutput {
	if interpreter.EncodedSize(o) <= most {
		return o
	}
	for i := range o.Calls {
		o.Calls[i].Made = nil
	}
	if interpreter.EncodedSize(o) <= most {
		return o
	}
	share := most / len(o.Calls)
	for i, driven := range o.Calls {
		size := interpreter.EncodedSize(driven)
		if size <= share {
			continue
		}
		o.Calls[i] = Driven{}
		if driven.Result != nil {
			result := interpreter.TooLargeResult(*driven.Result, step, fmt.Sprintf("the result of an iteration has %d bytes, more than its share of %d "+
				"in its batch; write rows with a sink and return less, or make the batch smaller", size, share))
			o.Calls[i].Result = &result
		}
	}
	return o
}

// WithinBytes drops the outcome if the call alone would exceed most bytes. That attempt is then repeated.
func (d Driven) WithinBytes(most int) Driven {
	if interpreter.EncodedSize(DriveOutput{Calls: []Driven{d}}) > most {
		d.Outcome, d.Made, d.Unwritten = nil, nil, nil
	}
	return d
}
