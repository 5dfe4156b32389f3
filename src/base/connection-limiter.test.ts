import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { ConnectionLimiter } from './connection-limiter.js'

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
function connect(limiter: ConnectionLimiter, address: string): Connection {
  const connection = new Connection(address, port++)
  limiter.admit(connection)
  return connection
}
const openOf = (connections: readonly Connection[]): number => connections.filter(({ isOpen }) => isOpen).length

it('the server closes the oldest connection of strangers, and never one whose client is known', () => {
  const closed: number[] = []
  const limiter = new ConnectionLimiter({ most: 8, onUnauthenticatedClosed: (connections) => closed.push(connections) })
  const known = connect(limiter, 'a')
  limiter.markAuthenticated(known)
  const early = connect(limiter, 'b')
  const gone = connect(limiter, 'c')
  gone.destroy()
  const others = Array.from({ length: 20 }, (_, at) => connect(limiter, `d${at}`))
  expect([known.isOpen, early.isOpen, openOf(others), limiter.size]).toEqual([true, false, 8, 8])
  expect(openOf(others.slice(-8))).toBe(8)
  // One line a minute.
  expect(closed).toEqual([1])
})

it('the server closes connections of the address that opens many before those of others', () => {
  const limiter = new ConnectionLimiter({ most: 8 })
  const slow = connect(limiter, 'a')
  const flood = Array.from({ length: 1_000 }, () => connect(limiter, 'b'))
  expect([slow.isOpen, openOf(flood)]).toEqual([true, 7])
  const late = connect(limiter, 'c')
  expect([slow.isOpen, late.isOpen, openOf(flood)]).toEqual([true, true, 6])
})

it('the server closes the oldest connection of an owner that has too many, and leaves those of others', () => {
  const limiter = new ConnectionLimiter({ most: 4 })
  const known = (owner: string): Connection => {
    const connection = connect(limiter, 'proxy')
    for (const _ of [1, 2]) limiter.markAuthenticated(connection, owner)
    return connection
  }
  const other = known('b')
  const [first, shared, ...rest] = Array.from({ length: 4 }, () => known('a'))
  known('a').destroy()
  if (shared) limiter.markAuthenticated(shared, 'b')
  expect([first?.isOpen, openOf(rest)]).toEqual([false, 2])
  const more = Array.from({ length: 3 }, () => known('a'))
  expect([other.isOpen, shared?.isOpen, openOf([...rest, ...more])]).toEqual([true, true, 4])
})

it('the server refuses further clients of an owner that stay connected, while others may lack files', () => {
  const limited: unknown[] = []
  const limiter = new ConnectionLimiter({ most: 4, onOwnerLimited: (owner, times) => limited.push([owner, times]) })
  const login = (owner: string): Connection => {
    const connection = connect(limiter, owner)
    for (const _ of [1, 2]) limiter.markPersistent(connection, owner)
    return connection
  }
  const [first, ...many] = Array.from({ length: 7 }, () => login('a'))
  expect([limiter.mayAddPersistent('a'), limiter.size]).toEqual([true, 0])
  const other = login('b')
  expect([limiter.mayAddPersistent('a'), limiter.mayAddPersistent('a'), limiter.mayAddPersistent('b')]).toEqual([
    false,
    false,
    true,
  ])
  expect([openOf([other, ...many]), limited]).toEqual([7, [['a', 1]]])
  first?.destroy()
  expect(limiter.mayAddPersistent('a')).toBe(true)
  // Connections over HTTP count apart: the oldest one is closed.
  const http = Array.from({ length: 6 }, () => {
    const connection = connect(limiter, 'a')
    limiter.markAuthenticated(connection, 'a')
    return connection
  })
  expect([openOf(http), openOf(many), limited.length]).toEqual([4, 6, 2])
})

it('the server knows a TLS socket and the connection below it as one', () => {
  const limiter = new ConnectionLimiter({ most: 2 })
  const raw = connect(limiter, 'a')
  const secure = new Connection('a', raw.remotePort)
  limiter.admit(secure)
  expect(limiter.size).toBe(1)
  limiter.markAuthenticated(secure)
  connect(limiter, 'b')
  connect(limiter, 'c')
  connect(limiter, 'd')
  expect([raw.isOpen, secure.isOpen, limiter.size]).toEqual([true, true, 2])
})

it('the server does not count a connection that has closed before its client was known', () => {
  const limiter = new ConnectionLimiter({ most: 2 })
  for (let at = 0; at < 8; at++) {
    const gone = connect(limiter, 'a')
    gone.destroy()
    if (at % 2 === 0) limiter.markPersistent(gone, 'o')
    else limiter.markAuthenticated(gone, 'o')
  }
  expect(limiter.mayAddPersistent('o')).toBe(true)
  const live = [connect(limiter, 'a'), connect(limiter, 'a')]
  for (const connection of live) limiter.markAuthenticated(connection, 'o')
  expect(openOf(live)).toBe(2)
})
