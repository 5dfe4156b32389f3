import { expect, it } from 'vitest'
import { TasksByKey } from './index.js'

const settled = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve))

it('work on one key takes turns, also after a failure, and runs beside the work on other keys', async () => {
  const turns = new TasksByKey()
  const done: string[] = []
  const gates = new Map<string, (error?: Error) => void>()
  const work = (name: string) => () =>
    new Promise<string>((resolve, reject) => {
      done.push(name)
      gates.set(name, (error) => (error ? reject(error) : resolve(name)))
    })
  const first = turns.take('a', work('a1'))
  const second = turns.take('a', work('a2'))
  void turns.take('b', work('b1'))
  await settled()
  expect(done).toEqual(['a1', 'b1'])
  gates.get('a1')?.(new Error('failed'))
  await expect(first).rejects.toThrow('failed')
  await settled()
  expect(done).toEqual(['a1', 'b1', 'a2'])
  gates.get('b1')?.()
  await turns.idle('b')
  expect([turns.keys, turns.has('b')]).toEqual([['a'], false])
  gates.get('a2')?.()
  expect(await second).toBe('a2')
  await turns.idle()
  await settled()
  expect(turns.keys).toEqual([])
})
