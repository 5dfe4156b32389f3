/**
 * Circles: files that import each other, directly or by way of others. Whoever reads one of them has to read all, and the
 * order in which they load decides what is defined. An `import type` counts: it ties the same readers.
 */

import { KNOWN_CIRCLES } from './known-circles.mjs'

/** The groups of product files that import each other, each sorted; files are keyed by path as `readHouse` makes them. */
export function circlesOf(house) {
  const product = [...house.values()].filter(({ path, isTest }) => /^(?:src|console)\//.test(path) && !isTest)
  const graph = new Map(product.map((file) => [file.path, importsOf(file, house)]))
  return stronglyConnected(graph).filter((group) => group.length > 1)
}

/** What is wrong about the circles of a house: new ones, and known ones that are gone. */
export function circleProblems(house, known = KNOWN_CIRCLES) {
  const circles = circlesOf(house)
  const isKnown = (circle) => known.some((group) => circle.every((path) => group.includes(path)))
  const isThere = (group) => circles.some((circle) => circle.every((path) => group.includes(path)))
  return [
    ...circles
      .filter((circle) => !isKnown(circle))
      .map((circle) => `${circle[0]}:1 imports in a circle: ${circle.join(' ')}`),
    ...known
      .filter((group) => group.every((path) => house.has(path)) && !isThere(group))
      .map((group) => `${group[0]}:1 is in no circle any more: take its group out of scripts/house/known-circles.mjs`),
  ]
}

function importsOf(file, house) {
  return file.imports
    .map(({ target }) => target && sourceOf(target, house))
    .filter((target) => target !== undefined && target !== file.path)
}

/** Imports name the compiled file. */
const sourceOf = (target, house) =>
  [target, target.replace(/\.js$/, '.ts'), target.replace(/\.js$/, '.tsx')].find((path) => house.has(path))

/** Tarjan's algorithm, without recursion: chains of imports are longer than a stack likes. */
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
