-- Neovim as a client: prints what a user would see, one JSON object, and quits with 1 on an error.
-- From the environment: FILE, SERVER (a JSON list), CHANGED (the text that the fix should write).
local file, command = os.getenv("FILE"), vim.json.decode(os.getenv("SERVER"))
local seen = { progress = {}, output = "" }

local function finish(code)
  io.stdout:write(vim.json.encode(seen) .. "\n")
  io.stdout:flush()
  vim.cmd(code == 0 and "qall!" or "cquit 1")
end

local function await(what, condition, ms)
  if not vim.wait(ms or 20000, condition, 20) then
    seen.error = what .. " did not come"
    finish(1)
  end
end

vim.cmd("edit " .. vim.fn.fnameescape(file))
local buffer = vim.api.nvim_get_current_buf()
local published = 0
local handlers = {
  ["textDocument/publishDiagnostics"] = function(err, result, context, config)
    vim.lsp.diagnostic.on_publish_diagnostics(err, result, context, config or {})
    published = published + 1
  end,
  ["window/workDoneProgress/create"] = function() return vim.NIL end,
  ["$/progress"] = function(_, result) table.insert(seen.progress, result.value.kind) end,
  ["rooflint/output"] = function(_, result) seen.output = seen.output .. result.text end,
}
local id = vim.lsp.start_client({
  name = "rooflint", cmd = command, root_dir = vim.fn.fnamemodify(file, ":h"), handlers = handlers,
})
local client = vim.lsp.get_client_by_id(id)
await("the server's start", function() return client.initialized end)
vim.lsp.buf_attach_client(buffer, id)

local function diagnostics()
  local found = {}
  for _, each in ipairs(vim.diagnostic.get(buffer)) do
    table.insert(found, {
      line = each.lnum, column = each.col, end_column = each.end_col, message = each.message,
      severity = each.severity, source = each.source,
    })
  end
  return found
end

await("diagnostics", function() return published > 0 end)
seen.before = diagnostics()
local first = vim.diagnostic.get(buffer)[1]
if not first then
  seen.error = "no diagnostic"
  finish(1)
end
local document = vim.lsp.util.make_text_document_params(buffer)
local position = { line = first.lnum, character = first.col }
local range = { start = position, ["end"] = { line = first.end_lnum, character = first.end_col } }
local function ask(method, params, ms)
  local answer, why = client.request_sync(method, params, ms or 20000, buffer)
  if not answer then
    seen.error = method .. ": " .. tostring(why)
    finish(1)
  end
  return answer
end

seen.hover = ask("textDocument/hover", { textDocument = document, position = position }).result.contents.value

local profile = ask("workspace/executeCommand",
  { command = "rooflint.server.profile", arguments = { { uri = vim.uri_from_bufnr(buffer) } } }, 240000)
seen.profile, seen.profile_error = profile.result, profile.err and profile.err.message
seen.measured_hover = ask("textDocument/hover", { textDocument = document, position = position }).result.contents.value
seen.measured = diagnostics()
vim.lsp.codelens.refresh()
await("code lenses", function() return #vim.lsp.codelens.get(buffer) > 0 end)
seen.lenses = vim.tbl_map(function(lens)
  return { line = lens.range.start.line, title = lens.command.title }
end, vim.lsp.codelens.get(buffer))
-- As it is drawn, in a namespace for each server.
await("drawn lenses", function()
  seen.drawn = {}
  for name, space in pairs(vim.api.nvim_get_namespaces()) do
    if name:match("^vim_lsp_codelens:") then
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, space, 0, -1, { details = true })) do
        for _, part in ipairs(mark[4].virt_text or {}) do table.insert(seen.drawn, part[1]) end
      end
    end
  end
  return #seen.drawn > 0
end)

local actions = ask("textDocument/codeAction",
  { textDocument = document, range = range, context = { diagnostics = vim.empty_dict() and {} } }).result
seen.actions = vim.tbl_map(function(action) return action.title end, actions)
published = 0
vim.lsp.util.apply_workspace_edit(actions[1].edit, client.offset_encoding)
await("diagnostics of the fixed text", function() return published > 0 end)
seen.after = diagnostics()
seen.text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n") .. "\n"
client.stop()
await("the server's end", function() return client.is_stopped() end)
finish(0)
