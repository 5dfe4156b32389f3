import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { Strangers } from './strangers.js'

class Connection extends EventEmitter {
  readonly remoteAddress: string
  readonly remotePort: number
  isOpen = true

  constructor(remoteAddress: string, remotePort: number) {
    super()
    this.remoteAddress = remoteAddress
    this.remotePort = remotePort
  }

  get destroyed(): boolean {
    return !this.isOpen
  }

  destroy(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.emit('close')
  }
}

let port = 1_024
function connect(strangers: Strangers, address: string): Connection {
  const connection = new Connection(address, port++)
  strangers.admit(connection)
  return connection
}
const openOf = (connections: readonly Connection[]): number => connections.filter(({ isOpen }) => isOpen).length

it('the server closes the oldest connection of strangers, and never one whose client is known', () => {
  const closed: number[] = []
  const strangers = new Strangers({ most: 8, onClosed: (connections) => closed.push(connections) })
  const known = connect(strangers, 'a')
  strangers.know(known)
  const early = connect(strangers, 'b')
  const gone = connect(strangers, 'c')
  gone.destroy()
  const others = Array.from({ length: 20 }, (_, at) => connect(strangers, `d${at}`))
  expect([known.isOpen, early.isOpen, openOf(others), strangers.size]).toEqual([true, false, 8, 8])
  expect(openOf(others.slice(-8))).toBe(8)
  // One line a minute.
  expect(closed).toEqual([1])
})

it('the server closes connections of the address that opens many before those of others', () => {
  const strangers = new Strangers({ most: 8 })
  const slow = connect(strangers, 'a')
  const flood = Array.from({ length: 1_000 }, () => connect(strangers, 'b'))
  expect([slow.isOpen, openOf(flood)]).toEqual([true, 7])
  const late = connect(strangers, 'c')
  expect([slow.isOpen, late.isOpen, openOf(flood)]).toEqual([true, true, 6])
})

it('the server closes the oldest connection of an owner that has too many, and leaves those of others', () => {
  const strangers = new Strangers({ most: 4 })
  const known = (owner: string): Connection => {
    const connection = connect(strangers, 'proxy')
    for (const _ of [1, 2]) strangers.know(connection, owner)
    return connection
  }
  const other = known('b')
  const [first, shared, ...rest] = Array.from({ length: 4 }, () => known('a'))
  known('a').destroy()
  if (shared) strangers.know(shared, 'b')
  expect([first?.isOpen, openOf(rest)]).toEqual([false, 2])
  const more = Array.from({ length: 3 }, () => known('a'))
  expect([other.isOpen, shared?.isOpen, openOf([...rest, ...more])]).toEqual([true, true, 4])
})

it('the server refuses further clients of an owner that stay connected, while others may lack files', () => {
  const limited: unknown[] = []
  const strangers = new Strangers({ most: 4, onOwnerLimited: (owner, times) => limited.push([owner, times]) })
  const login = (owner: string): Connection => {
    const connection = connect(strangers, owner)
    for (const _ of [1, 2]) strangers.keep(connection, owner)
    return connection
  }
  const [first, ...many] = Array.from({ length: 7 }, () => login('a'))
  expect([strangers.mayKeep('a'), strangers.size]).toEqual([true, 0])
  const other = login('b')
  expect([strangers.mayKeep('a'), strangers.mayKeep('a'), strangers.mayKeep('b')]).toEqual([false, false, true])
  expect([openOf([other, ...many]), limited]).toEqual([7, [['a', 1]]])
  first?.destroy()
  expect(strangers.mayKeep('a')).toBe(true)
  // Connections over HTTP count apart: the oldest one is closed.
  const http = Array.from({ length: 6 }, () => {
    const connection = connect(strangers, 'a')
    strangers.know(connection, 'a')
    return connection
  })
  expect([openOf(http), openOf(many), limited.length]).toEqual([4, 6, 2])
})

it('the server knows a TLS socket and the connection below it as one', () => {
  const strangers = new Strangers({ most: 2 })
  const raw = connect(strangers, 'a')
  const secure = new Connection('a', raw.remotePort)
  strangers.admit(secure)
  expect(strangers.size).toBe(1)
  strangers.know(secure)
  connect(strangers, 'b')
  connect(strangers, 'c')
  connect(strangers, 'd')
  expect([raw.isOpen, secure.isOpen, strangers.size]).toEqual([true, true, 2])
})

it('the server does not count a connection that has closed before its client was known', () => {
  const strangers = new Strangers({ most: 2 })
  for (let at = 0; at < 8; at++) {
    const gone = connect(strangers, 'a')
    gone.destroy()
    if (at % 2 === 0) strangers.keep(gone, 'o')
    else strangers.know(gone, 'o')
  }
  expect(strangers.mayKeep('o')).toBe(true)
  const live = [connect(strangers, 'a'), connect(strangers, 'a')]
  for (const connection of live) strangers.know(connection, 'o')
  expect(openOf(live)).toBe(2)
})
