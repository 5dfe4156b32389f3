import { describe, expect, it } from 'vitest'
import { KeyList } from './key-list.js'

/** A database whose SCAN returns these names, some at each step. */
function database(steps: readonly (readonly string[])[]) {
  const asked: string[] = []
  const scan = async (cursor: string, count: number) => {
    asked.push(`${cursor} ${count}`)
    const next = Number(cursor) + 1
    return { names: steps[Number(cursor)] ?? [], cursor: next < steps.length ? String(next) : undefined }
  }
  return { asked, scan }
}

const many = (from: number, count: number) => Array.from({ length: count }, (_, index) => `k${from + index}`)

describe('a search for keys', () => {
  it('ends a step when it has found enough, and goes on from there', async () => {
    const { scan, asked } = database([many(0, 150), many(150, 150), many(300, 10)])
    const list = new KeyList(scan, '', () => 0)
    await list.more()
    expect([list.state, list.tree.count, list.searched, asked]).toEqual(['paused', 300, 2_000, ['0 1000', '1 1000']])
    await list.more()
    expect([list.state, list.tree.count]).toEqual(['done', 310])
    await list.more()
    expect(asked.length).toBe(3)
  })

  it('ends a step that finds nothing, so that a mistyped pattern does not search for minutes', async () => {
    const { scan, asked } = database(Array.from({ length: 1_000 }, () => []))
    const list = new KeyList(scan, '', () => 0)
    await list.more()
    expect([list.state, asked.length]).toEqual(['paused', 50])
  })

  it('finds all when asked to, until it is stopped', async () => {
    const { scan } = database(Array.from({ length: 10 }, (_, step) => [`k${step}`]))
    const list = new KeyList(
      (cursor, count) => {
        if (cursor === '4') list.stop()
        return scan(cursor, count)
      },
      '',
      () => 0,
    )
    await list.all()
    expect([list.state, list.tree.count]).toEqual(['paused', 5])
    await list.all()
    expect([list.state, list.tree.count]).toEqual(['done', 10])
  })

  it('says why it failed, keeps what it has, and goes on when asked again', async () => {
    const { scan } = database([many(0, 10), many(10, 10)])
    let isAway = false
    const list = new KeyList((cursor, count) => (isAway ? Promise.reject(new Error('away')) : scan(cursor, count)), '')
    isAway = true
    await list.more()
    expect([list.state, list.error?.message]).toEqual(['failed', 'away'])
    isAway = false
    await list.more()
    expect([list.state, list.tree.count, list.error]).toEqual(['done', 20, undefined])
  })

  it('groups by another separator, and keeps the selection and its changes meanwhile', async () => {
    const { scan } = database([['a:1', 'a:2', 'b.1', 'b.2']])
    // Each reading of the clock ends a slice.
    let ms = 0
    const list = new KeyList(scan, ':', () => (ms += 100))
    await list.more()
    list.change((tree) => tree.selectNames(['a:1', 'b.1'], true))
    const grouped = list.regroup('.')
    list.remove(['b.2'])
    list.change((tree) => tree.selectNames(['a:1'], false))
    list.add('b.3')
    expect([list.isGrouping, list.tree.separator]).toEqual([true, ':'])
    await grouped
    expect([list.isGrouping, list.tree.separator]).toEqual([false, '.'])
    expect([[...list.tree.names].sort(), [...list.tree.selected]]).toEqual([['a:1', 'a:2', 'b.1', 'b.3'], ['b.1']])
    const other = list.regroup('/')
    await list.regroup('.')
    await other
    expect(list.tree.separator).toBe('.')
  })

  it('notifies its listeners of each change, until they leave', async () => {
    const list = new KeyList(database([['a']]).scan, '')
    const versions: number[] = []
    const leave = list.subscribe(() => versions.push(list.version()))
    await list.more()
    list.add('b')
    leave()
    list.add('c')
    expect(versions).toEqual([1, 2, 3])
  })
})
