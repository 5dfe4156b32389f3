import { TurnoverMap } from '../../base/index.js'
import { Fifo } from './collections.js'
import type { Entry } from './entry.js'
import { Line } from './line.js'

/** Limits of requests in flight, in places. A request takes one place, or several if it needs much memory. */
export interface InFlightLimits {
  /** In total, without slow requests. */
  readonly maxTotal: number
  /** Of one account, without slow requests. Less than `maxTotal`, so that one account cannot take every place. */
  readonly maxPerAccount: number
  /** To one host, including slow requests. */
  readonly maxPerHost: number
  /** A request that is open for longer than this is slow. It no longer counts in `maxTotal` and `maxPerAccount`. */
  readonly slowAfterMs: number
  /** Maximum of slow requests, and of the bytes of their bodies. Requests beyond that keep counting. */
  readonly maxSlow: number
  readonly maxSlowBytes: number
  /** Memory of a request for each of its places. */
  readonly bytesPerPlace: number
}

/** Due messages of one account to one host, from one queue or from none. */
interface HostLine {
  readonly key: string
  readonly account: Account
  readonly host: Host
  readonly ready: Line
  /** `rotating`: in the rotation of its account. `blocked`: waits for a free place at its host. */
  place: 'idle' | 'rotating' | 'blocked'
}

interface Account {
  readonly name: string
  /** Lines in the rotation. */
  readonly lines: HostLine[]
  isRotating: boolean
  quick: number
  slow: number
  /** Lines and flights that refer to it. Without any it is deleted. */
  uses: number
}

interface Host {
  readonly name: string
  readonly blocked: HostLine[]
  sending: number
  slow: number
  uses: number
}

/** A request in flight. */
interface Flight {
  readonly account: Account
  readonly host: Host
  readonly startedAt: number
  bodyBytes: number
  places: number
  state: 'quick' | 'slow' | 'over'
}

/**
 * Chooses the next message to send, round robin: accounts take turns, and within an account its lines do. There is a
 * line for each destination host and queue, so a long line delays only itself. Priorities order the messages of a line.
 *
 * Hosts and accounts have limits of requests in flight. A request with a large body counts several times, so the same
 * limits bound the memory of all bodies; the last one taken may exceed them. A request that stays open for long becomes
 * slow and makes space for others. When very many requests are slow, hosts with slow requests get no more until some of
 * them end. So destinations that never respond delay only their own messages.
 *
 * A blocked line always belongs to a host with requests in flight, so the `done` of one of these requests unblocks it.
 */
export class RoundRobin {
  readonly #limits: InFlightLimits
  readonly #accounts = new TurnoverMap<string, Account>()
  readonly #hosts = new TurnoverMap<string, Host>()
  readonly #lines = new TurnoverMap<string, HostLine>()
  /** Accounts with a line in rotation and a free place in flight. */
  readonly #rotation: Account[] = []
  readonly #flights = new TurnoverMap<Entry, Flight>()
  /** In start order. */
  readonly #quickFlights = new Fifo<Flight>()
  #quick = 0
  /** Places of all quick requests. */
  #places = 0
  #slow = 0
  #slowBytes = 0

  constructor(limits: InFlightLimits) {
    this.#limits = limits
  }

  /** Requests in flight, without slow ones. */
  get quick(): number {
    return this.#quick
  }

  /** Adds a due message. */
  push(entry: Entry): void {
    entry.state = 'ready'
    const line = this.#line(entry)
    line.ready.push(entry)
    if (line.place === 'idle') this.#rotate(line)
  }

  /** Takes the next message to send. The caller calls `done` when its request is over. */
  take(now: number): Entry | undefined {
    this.#markSlow(now)
    while (this.#places < this.#limits.maxTotal) {
      const account = this.#rotation.shift()
      if (!account) return undefined
      account.isRotating = false
      // A claim may have taken places of the account since it joined the rotation.
      const entry = account.quick < this.#limits.maxPerAccount ? this.#takeOf(account, now) : undefined
      this.#rotateAccount(account)
      if (entry) return entry
    }
    return undefined
  }

  /**
   * Claims this much memory for the request of a taken message. Returns whether the limits allow it now. If not, the caller
   * puts the message back, and it is taken again when they do.
   */
  claim(entry: Entry, bytes: number): boolean {
    entry.bodyBytes = Math.max(entry.bodyBytes, bytes)
    const flight = this.#flights.get(entry)
    if (!flight || flight.bodyBytes >= bytes) return flight !== undefined
    const more = this.#placesOf(entry) - flight.places
    if (more > 0 && (flight.state === 'slow' || !this.#hasPlaces(flight, more))) return false
    this.#count(flight, -1)
    flight.places += more
    flight.bodyBytes = bytes
    this.#count(flight, 1)
    return true
  }

  /** The request of a taken message is over. */
  done(entry: Entry): void {
    const flight = this.#flights.get(entry)
    if (!flight) return
    this.#flights.delete(entry)
    this.#change(flight, 'over')
    this.#unblock(flight.host)
    this.#rotateAccount(flight.account)
    this.#forget(flight)
  }

  /** When the next request in flight becomes slow, which may free a place for another. */
  wakeAt(): number {
    if (this.#rotation.length === 0 && this.#places < this.#limits.maxPerAccount) return Number.POSITIVE_INFINITY
    const first = this.#quickFlights.peekAlive('quick')
    return first ? first.startedAt + this.#limits.slowAfterMs : Number.POSITIVE_INFINITY
  }

  /** The next message of an account: from its first line whose host has a free place. */
  #takeOf(account: Account, now: number): Entry | undefined {
    for (let line = account.lines.shift(); line; line = account.lines.shift()) {
      line.place = 'idle'
      if (!this.#hasSpace(line)) {
        line.place = 'blocked'
        line.host.blocked.push(line)
        continue
      }
      const entry = line.ready.shiftAlive('ready')
      if (entry) this.#begin(entry, line, now)
      // No request has started, so no `done` will unblock the host.
      else this.#unblock(line.host)
      if (line.ready.size > 0) this.#rotate(line)
      else this.#endLine(line)
      if (entry) return entry
    }
    return undefined
  }

  #endLine(line: HostLine): void {
    this.#lines.delete(line.key)
    this.#forget(line)
  }

  #begin(entry: Entry, { account, host }: HostLine, now: number): void {
    entry.state = 'sending'
    const { bodyBytes } = entry
    const flight: Flight = { account, host, startedAt: now, bodyBytes, places: this.#placesOf(entry), state: 'quick' }
    this.#flights.set(entry, flight)
    this.#quickFlights.push(flight)
    this.#count(flight, 1)
    account.uses++
    host.uses++
  }

  /**
   * The places that a request takes: at most `maxTotal - maxPerAccount`, so that one
   * account's last request leaves places free.
   */
  #placesOf({ bodyBytes }: Entry): number {
    const { bytesPerPlace, maxTotal, maxPerAccount } = this.#limits
    if (bodyBytes <= bytesPerPlace) return 1
    return Math.min(Math.ceil(bodyBytes / bytesPerPlace), Math.max(1, maxTotal - maxPerAccount))
  }

  #hasPlaces({ account, host }: Flight, more: number): boolean {
    const { maxTotal, maxPerAccount, maxPerHost } = this.#limits
    const isWithin = account.quick + more <= maxPerAccount && host.sending + more <= maxPerHost
    return isWithin && this.#places + more <= maxTotal
  }

  #hasSpace({ host, account }: HostLine): boolean {
    const { maxPerHost, maxSlow } = this.#limits
    const isCrowded = this.#slow > maxSlow / 2 || account.slow > maxSlow / 4
    return host.sending < maxPerHost && !(host.slow > 0 && isCrowded)
  }

  #markSlow(now: number): void {
    for (;;) {
      const flight = this.#quickFlights.peekAlive('quick')
      if (!flight || flight.startedAt + this.#limits.slowAfterMs > now || !this.#hasSpaceForSlow(flight)) return
      this.#change(flight, 'slow')
      this.#rotateAccount(flight.account)
    }
  }

  #hasSpaceForSlow({ bodyBytes }: Flight): boolean {
    const { maxSlow, maxSlowBytes } = this.#limits
    return this.#slow < maxSlow && this.#slowBytes + bodyBytes <= maxSlowBytes
  }

  #change(flight: Flight, state: Flight['state']): void {
    this.#count(flight, -1)
    flight.state = state
    this.#count(flight, 1)
  }

  /** Adds a flight to the counters of its state, or removes it from them. */
  #count({ state, places, bodyBytes, account, host }: Flight, times: 1 | -1): void {
    if (state === 'over') return
    host.sending += places * times
    if (state === 'quick') {
      this.#quick += times
      this.#places += places * times
      account.quick += places * times
    } else {
      this.#slow += times
      this.#slowBytes += bodyBytes * times
      account.slow += times
      host.slow += times
    }
  }

  #rotate(line: HostLine): void {
    line.place = 'rotating'
    line.account.lines.push(line)
    this.#rotateAccount(line.account)
  }

  #rotateAccount(account: Account): void {
    if (account.isRotating || account.lines.length === 0 || account.quick >= this.#limits.maxPerAccount) return
    account.isRotating = true
    this.#rotation.push(account)
  }

  /** Puts as many lines back into rotation as the host has free places. */
  #unblock(host: Host): void {
    for (let free = this.#limits.maxPerHost - host.sending; free > 0; free--) {
      const line = host.blocked[0]
      if (!line || !this.#hasSpace(line)) return
      host.blocked.shift()
      this.#rotate(line)
    }
  }

  #line(entry: Entry): HostLine {
    const { accountId, queue } = entry.message
    const key = `${accountId} ${queue ?? ''} ${entry.host}`
    let line = this.#lines.get(key)
    if (!line) {
      line = { key, account: this.#account(accountId), host: this.#host(entry.host), ready: new Line(), place: 'idle' }
      line.account.uses++
      line.host.uses++
      this.#lines.set(key, line)
    }
    return line
  }

  #forget({ account, host }: HostLine | Flight): void {
    if (--account.uses === 0) this.#accounts.delete(account.name)
    if (--host.uses === 0) this.#hosts.delete(host.name)
  }

  #account(name: string): Account {
    let account = this.#accounts.get(name)
    if (!account) {
      account = { name, lines: [], isRotating: false, quick: 0, slow: 0, uses: 0 }
      this.#accounts.set(name, account)
    }
    return account
  }

  #host(name: string): Host {
    let host = this.#hosts.get(name)
    if (!host) {
      host = { name, blocked: [], sending: 0, slow: 0, uses: 0 }
      this.#hosts.set(name, host)
    }
    return host
  }
}
