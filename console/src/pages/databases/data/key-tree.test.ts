import { describe, expect, it } from 'vitest'
import { keyNameOf } from '../../../../../src/contract/databases/keys/key-name.js'
import type { KeyRow } from './key-rows.js'
import { KeyTree } from './key-tree.js'
import { shownName } from './shown-name.js'

const textOf = (row: KeyRow): string =>
  `${'  '.repeat(row.level - 1)}${row.label}${row.kind === 'folder' ? ` (${row.folder.count})` : ''}`

const rowsOf = (tree: KeyTree): KeyRow[] =>
  Array.from({ length: tree.rows().count }, (_, index) => tree.rows().at(index))

const textsOf = (tree: KeyTree): string[] => rowsOf(tree).map(textOf)

function treeOf(names: readonly string[], separator = ':'): KeyTree {
  const tree = new KeyTree(separator)
  tree.add(names)
  return tree
}

function open(tree: KeyTree, path: string): void {
  const row = rowsOf(tree).find((one) => one.kind === 'folder' && one.folder.path === path)
  if (row?.kind === 'folder') tree.open(row.folder, true)
}

function rowAt(tree: KeyTree, label: string): KeyRow {
  const row = rowsOf(tree).find((one) => one.label === label)
  if (!row) throw new Error(`no row ${label}`)
  return row
}

describe('a tree of keys', () => {
  it('has folders before keys, in the order of their numbers, and counts what is below', () => {
    const tree = treeOf(['user:10', 'user:9', 'user:9:cart', 'about', 'zoo:a:b:c'])
    expect(textsOf(tree)).toEqual(['user: (3)', 'zoo: (1)', 'about'])
    open(tree, 'user:')
    open(tree, 'user:9:')
    expect(textsOf(tree)).toEqual(['user: (3)', '  9: (1)', '    cart', '  9', '  10', 'zoo: (1)', 'about'])
    const folder = rowAt(tree, '9:')
    expect(folder.kind === 'folder' && tree.rows().indexOf(folder.folder)).toBe(1)
  })

  it('without a separator is a list in the order of arrival, each name once', () => {
    const tree = treeOf(['b:1', 'a', 'b:1', 'c'], '')
    expect(textsOf(tree)).toEqual(['b:1', 'a', 'c'])
    expect(() => tree.rows().at(3)).toThrow(RangeError)
  })

  it('shows names that end with the separator, are empty or binary, and folds no deeper than it shows', () => {
    const tree = treeOf(['a:', '', keyNameOf(new Uint8Array([0xff, 0x3a, 0x41])), ':'.repeat(100)])
    open(tree, 'a:')
    open(tree, '\\xff:')
    expect(textsOf(tree)).toEqual([': (1)', '\\xff: (1)', '  A', 'a: (1)', '  ', ''])
    expect(shownName('tab\t"quoted"')).toBe('tab\\t\\"quoted\\"')
  })

  it('selects folders with all below, and knows what is selected in part', () => {
    const tree = treeOf(['a:1', 'a:2', 'a:b:3', 'c'])
    tree.select(rowAt(tree, 'a:'), true)
    expect([[...tree.selected].sort(), tree.selectedOf()]).toEqual([['a:1', 'a:2', 'a:b:3'], 'some'])
    open(tree, 'a:')
    tree.select(rowAt(tree, '1'), false)
    const folder = rowAt(tree, 'a:')
    expect(folder.kind === 'folder' && tree.selectedOf(folder.folder)).toBe('some')
    tree.selectAll(true)
    expect([tree.selected.size, tree.selectedOf()]).toEqual([4, 'all'])
    tree.selectAll(false)
    expect([tree.selected.size, tree.selectedOf()]).toEqual([0, 'none'])
  })

  it('forgets removed keys, their folders and their selection', () => {
    const tree = treeOf(['a:1', 'a:b:2', 'a:b:3', 'c'])
    tree.selectAll(true)
    tree.remove(['a:b:2', 'a:b:3', 'unknown'])
    open(tree, 'a:')
    expect([textsOf(tree), [...tree.selected].sort(), tree.selectedOf()]).toEqual([
      ['a: (1)', '  1', 'c'],
      ['a:1', 'c'],
      'all',
    ])
    tree.remove(['a:1', 'c'])
    expect([tree.count, tree.selectedOf(), textsOf(tree)]).toEqual([0, 'none', []])
    tree.add(['a:1'])
    expect(textsOf(tree)).toEqual(['a: (1)'])
  })
})
