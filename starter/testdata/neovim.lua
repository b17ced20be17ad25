-- What TestNeovim has Neovim do with starter lsp. Lines and columns count from 0.
local result = {}
local wait = 60000

local function main()
  vim.cmd('edit users.yaml')
  local buffer = vim.api.nvim_get_current_buf()
  local client = vim.lsp.start_client({cmd = {vim.env.STARTER, 'lsp'}, root_dir = vim.loop.cwd()})
  vim.lsp.buf_attach_client(buffer, client)
  local function problems()
    local all = {}
    for _, one in ipairs(vim.diagnostic.get(buffer)) do
      table.insert(all, one.lnum .. ':' .. one.col .. ' ' .. one.message)
    end
    return all
  end
  assert(vim.wait(wait, function() return #problems() > 0 end, 20), 'no problems are shown')
  result.Problems = problems()

  local function request(method, line, column, more)
    local params = {
      textDocument = {uri = vim.uri_from_bufnr(buffer)}, position = {line = line, character = column},
    }
    for key, value in pairs(more or {}) do params[key] = value end
    local answers, failed = vim.lsp.buf_request_sync(buffer, method, params, wait)
    assert(answers, failed)
    assert(not answers[client].err, vim.inspect(answers[client].err))
    return answers[client].result
  end
  local function labels(list)
    local all = {}
    for _, one in ipairs(list.items) do table.insert(all, one.label) end
    return all
  end
  local here = {start = {line = 7, character = 11}, ['end'] = {line = 7, character = 11}}
  local actions = request('textDocument/codeAction', 7, 11, {range = here, context = {diagnostics = {}, only = {'quickfix'}}})
  vim.lsp.util.apply_workspace_edit(actions[1].edit, 'utf-16')
  vim.api.nvim_buf_set_lines(buffer, 11, 11, false, {'    next: load'})
  assert(vim.wait(wait, function() return #problems() == 0 end, 20), 'problems are left: ' .. vim.inspect(problems()))

  result.Labels = labels(request('textDocument/completion', 11, 4))
  result.Members = labels(request('textDocument/completion', 10, 29))
  result.Hover = request('textDocument/hover', 10, 5).contents.value
  local definition = request('textDocument/definition', 7, 12)[1].range.start
  result.Definition = definition.line .. ':' .. definition.character
  result.References = #request('textDocument/references', 8, 11, {context = {includeDeclaration = true}})
  vim.lsp.util.apply_workspace_edit(request('textDocument/rename', 8, 11, {newName = 'users'}), 'utf-16')
  result.Text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n') .. '\n'
  vim.lsp.stop_client(client)
end

local ok, failed = pcall(main)
if not ok then result.Error = tostring(failed) end
vim.fn.writefile({vim.fn.json_encode(result)}, 'result.json')
vim.cmd('qall!')
