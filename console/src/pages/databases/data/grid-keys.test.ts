import { expect, it } from 'vitest'
import { reactionTo, selectRange } from './grid-keys.js'
import { KeyTree } from './key-tree.js'

function tree(): KeyTree {
  const made = new KeyTree(':')
  made.add(['a:1', 'a:2', 'b', 'c', 'd'])
  return made
}

const press = (made: KeyTree, key: string, active: number, more: { shiftKey?: boolean; isMeta?: boolean } = {}) =>
  reactionTo({ key, shiftKey: false, isMeta: false, ...more }, made, { active, anchor: active }, 3)

it('the arrow keys move within the list', () => {
  const made = tree()
  expect(['ArrowDown', 'ArrowUp', 'PageDown', 'Home', 'End'].map((key) => press(made, key, 1))).toEqual(
    [2, 0, 3, 0, 3].map((to) => ({ kind: 'move', to, extends: false })),
  )
  expect(press(made, 'ArrowUp', 0)).toMatchObject({ to: 0 })
  expect(press(made, 'ArrowDown', 1, { shiftKey: true })).toMatchObject({ to: 2, extends: true })
  expect(press(new KeyTree(''), 'ArrowDown', 0)).toBeUndefined()
})

it('the right arrow opens a folder, the left arrow closes it or goes to the folder of a key', () => {
  const made = tree()
  const opened = press(made, 'ArrowRight', 0)
  expect(opened).toMatchObject({ kind: 'open-folder', isOpen: true })
  if (opened?.kind === 'open-folder') made.open(opened.row.folder, true)
  expect(press(made, 'ArrowRight', 0)).toMatchObject({ kind: 'move', to: 1 })
  expect(press(made, 'ArrowLeft', 2)).toMatchObject({ kind: 'move', to: 0 })
  expect(press(made, 'ArrowLeft', 0)).toMatchObject({ kind: 'open-folder', isOpen: false })
  expect(press(made, 'ArrowLeft', 3)).toBeUndefined()
  expect(press(made, 'Enter', 1)).toMatchObject({ kind: 'open-key', row: { name: 'a:1' } })
})

it('keys select rows, and act on a selection only if there is one', () => {
  const made = tree()
  expect(press(made, ' ', 1)).toMatchObject({ kind: 'toggle', row: { name: 'b' } })
  expect(press(made, 'a', 1, { isMeta: true })).toEqual({ kind: 'select-all' })
  expect(press(made, 'c', 1, { isMeta: true })).toBeUndefined()
  expect([press(made, 'Delete', 1), press(made, 'Escape', 1)]).toEqual([undefined, undefined])
  made.selectAll(true)
  expect([press(made, 'Delete', 1), press(made, 'Escape', 1)]).toEqual([{ kind: 'delete' }, { kind: 'select-none' }])
})

it('a range follows its end, and a closed folder stands for its keys', () => {
  const made = tree()
  selectRange(made, 1, 1, 3)
  expect([...made.selected]).toEqual(['b', 'c', 'd'])
  selectRange(made, 1, 3, 2)
  expect([...made.selected]).toEqual(['b', 'c'])
  selectRange(made, 1, 2, 0)
  expect([...made.selected].sort()).toEqual(['a:1', 'a:2', 'b'])
})
