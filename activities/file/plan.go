package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reprise/activities/format"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

var _ tool.FilePlanner = (*Tool)(nil)

// PlanFile predicts what a write would do to its file, or to the folder of files that its path is. It reads only, and creates nothing.
func (t *Tool) PlanFile(ctx context.Context, in interpreter.ToolInput) (plan interpreter.FilePlan, err error) {
	path, options, err := t.writeTarget(in)
	if err != nil {
		return plan, err
	}
	mode, err := tool.ChoiceField(in, playbook.FieldMode, modeAppend, modeAppend, playbook.ModeOverwrite)
	if err != nil {
		return plan, err
	}
	plan = interpreter.FilePlan{Mode: mode, Format: options.Format, Compression: options.Compression, InFolder: writesObjects(in, options), ByRow: in.RowPaths != nil}
	named, typed, err := readColumns(in, options.Format)
	if err != nil {
		return plan, err
	}
	if !plan.InFolder {
		return plan, t.planLocal(in, path, options, &plan)
	}
	w := &objectWrite{WriteOptions: options, overwrite: mode == playbook.ModeOverwrite, named: named, typed: typed}
	if err := w.readPublishing(in); err != nil {
		return plan, err
	}
	if missing, err := t.isFolderToMake(ctx, in); missing || err != nil {
		return plan, err
	}
	if w.remote, err = t.openRemote(ctx, in, path); err != nil {
		return plan, err
	}
	if err := t.readRejected(ctx, in, w); err != nil {
		return plan, err
	}
	if w.rejects != nil {
		plan.Rejected = w.rejects.to.path
		if err := w.checkRejected(ctx); err != nil {
			return plan, err
		}
	}
	if plan.ByRow {
		_, err = w.listManifests(ctx) // the store is there
		return plan, err
	}
	return plan, w.planFolder(ctx, &plan)
}

// modeAppend is the mode of a sink that does not say one.
const modeAppend = "append"

// isFolderToMake reports whether the folder of a connection does not exist and would be made by a write: that of file:NAME.
func (t *Tool) isFolderToMake(ctx context.Context, in interpreter.ToolInput) (bool, error) {
	if in.Auth == "" {
		return false, nil
	}
	raw, err := t.res.URLConnection(ctx, in.Auth, "file", false)
	if err != nil {
		return false, err
	}
	folder, isLocal := strings.CutPrefix(raw, "file:")
	if !isLocal || !filepath.IsLocal(folder) {
		return false, nil
	}
	_, err = os.Stat(filepath.Join(t.res.Directory, folder))
	return errors.Is(err, fs.ErrNotExist), nil
}

// planFolder reads what the last manifest has, and whether rows can be added to it.
func (w *objectWrite) planFolder(ctx context.Context, plan *interpreter.FilePlan) error {
	last, err := w.lastManifest(ctx)
	if err != nil {
		return err
	}
	plan.Exists, plan.Manifest = last.Number > 0, last.Number
	plan.Files, plan.Rows, plan.Bytes = len(last.Files), last.Rows, last.Bytes
	if err := w.checkFormat(last); err != nil {
		return err
	}
	if w.Format != format.Parquet {
		return nil
	}
	if err := w.settleTable(last, nil, func(int) bool { return true }); err != nil {
		return w.formatError(err)
	}
	return nil
}

// planLocal reads what is at the path of a file in the worker's directory, and whether rows can be added to it.
func (t *Tool) planLocal(in interpreter.ToolInput, path string, options format.WriteOptions, plan *interpreter.FilePlan) error {
	if err := refuseForFiles(in); err != nil {
		return err
	}
	to, err := t.openPlace(in, path, "write", false)
	if failure, own := errors.AsType[*tool.Error](err); own && failure.Type == "not_found" {
		return nil // its folder is made
	}
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	w := &fileWrite{place: to, path: path, WriteOptions: options}
	file, info, err := w.openExisting(os.O_RDONLY)
	if err != nil {
		return w.writeError(path, err)
	}
	if file == nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	plan.Exists, plan.Bytes = true, info.Size()
	if plan.Mode == playbook.ModeOverwrite || plan.Bytes == 0 {
		return nil
	}
	return w.checkPacking(file)
}
