/**
 * Circles: files that import each other, directly or through others. A reader of one has to read all of them, and the
 * load order decides what is defined. An `import type` counts too, because a reader has to follow it as well.
 */

/** A line for each group of files that import each other. `files` is the result of `readSources`. */
export function circleProblems(files) {
  const graph = new Map([...files.values()].map((file) => [file.path, importsOf(file, files)]))
  return stronglyConnected(graph)
    .filter((group) => group.length > 1)
    .map((circle) => `${circle[0]}:1 imports in a circle: ${circle.join(' ')}`)
}

function importsOf(file, files) {
  return file.imports
    .map(({ target }) => target && sourceOf(target, files))
    .filter((target) => target !== undefined && target !== file.path)
}

/** The source file of an import, which names the compiled file. */
const sourceOf = (target, files) =>
  [target, target.replace(/\.js$/, '.ts'), target.replace(/\.js$/, '.tsx')].find((path) => files.has(path))

/** Tarjan's algorithm, without recursion, because long chains of imports would overflow the stack. */
function stronglyConnected(graph) {
  const state = { index: new Map(), low: new Map(), stack: [], onStack: new Set(), groups: [] }
  for (const node of graph.keys()) if (!state.index.has(node)) visitFrom(node, graph, state)
  return state.groups
}

function visitFrom(start, graph, state) {
  const frames = [enter(start, state)]
  while (frames.length > 0) {
    const frame = frames.at(-1)
    const next = (graph.get(frame.node) ?? [])[frame.edge++]
    if (next === undefined) leave(frames, state)
    else if (!state.index.has(next)) frames.push(enter(next, state))
    else if (state.onStack.has(next)) lower(frame.node, state.index.get(next), state)
  }
}

function enter(node, { index, low, stack, onStack }) {
  index.set(node, index.size)
  low.set(node, index.get(node))
  stack.push(node)
  onStack.add(node)
  return { node, edge: 0 }
}

function leave(frames, state) {
  const { node } = frames.pop()
  const parent = frames.at(-1)
  if (parent) lower(parent.node, state.low.get(node), state)
  if (state.low.get(node) !== state.index.get(node)) return
  const group = state.stack.splice(state.stack.indexOf(node))
  for (const member of group) state.onStack.delete(member)
  state.groups.push(group.sort())
}

function lower(node, value, { low }) {
  low.set(node, Math.min(low.get(node), value))
}
