import { TurnoverMap } from '../../base/index.js'
import type { Entry } from './entry.js'
import { Fifo } from './ordering.js'

/** How many requests may be in flight. */
export interface InFlightLimits {
  /** In all, not counting slow ones. */
  readonly most: number
  /** Of one account, not counting slow ones: less than `most`, so that nobody finds every place taken by one other. */
  readonly maxPerAccount: number
  /** To one host, slow ones included. */
  readonly maxPerHost: number
  /** A request that is open for longer than this is slow: it stops counting, so that others can begin. */
  readonly slowAfterMs: number
  /** So many requests may be slow, and hold bodies of so many bytes; what is beyond goes on counting. */
  readonly maxSlow: number
  readonly maxSlowBytes: number
}

/** Messages that are due and go to one host, for one account, out of one queue or out of none: first in, first out. */
interface Line {
  readonly key: string
  readonly account: Account
  readonly host: Host
  readonly ready: Fifo<Entry>
  /** `turning`: among the lines of its account that take turns; `blocked`: waits for room at its host. */
  place: 'idle' | 'turning' | 'blocked'
}

interface Account {
  readonly name: string
  /** Those that take turns. */
  readonly lines: Line[]
  isTurning: boolean
  quick: number
  slow: number
  /** Lines and flights that are of it; without any it is forgotten. */
  uses: number
}

interface Host {
  readonly name: string
  readonly blocked: Line[]
  sending: number
  slow: number
  uses: number
}

/** A request in flight. */
interface Flight {
  readonly account: Account
  readonly host: Host
  readonly startedAt: number
  readonly bodyBytes: number
  state: 'quick' | 'slow' | 'over'
}

/**
 * Who is sent next. Accounts take turns; within an account its lines do, one for each destination host and queue. So a
 * long line delays nobody but itself.
 *
 * A host has at most its share of the requests in flight, and an account its own. A request that stays open makes room
 * for others after a while; when very many do, hosts that hold such requests get nothing more until some of them end.
 * Destinations that never answer therefore keep their own messages waiting and nobody else's.
 *
 * Whatever takes away room is followed by `done`, which looks for who waited for it: a blocked line belongs to a host
 * that has requests in flight.
 */
export class RoundRobin {
  readonly #limits: InFlightLimits
  readonly #accounts = new TurnoverMap<string, Account>()
  readonly #hosts = new TurnoverMap<string, Host>()
  readonly #lines = new TurnoverMap<string, Line>()
  /** Accounts with a line that turns and room in flight. */
  readonly #turning: Account[] = []
  readonly #flights = new TurnoverMap<Entry, Flight>()
  /** In the order of their start. */
  readonly #quickFlights = new Fifo<Flight>()
  #quick = 0
  #slow = 0
  #slowBytes = 0

  constructor(limits: InFlightLimits) {
    this.#limits = limits
  }

  /** Requests in flight that count. */
  get quick(): number {
    return this.#quick
  }

  /** Adds a message that is due. */
  push(entry: Entry): void {
    entry.state = 'ready'
    const line = this.#line(entry)
    line.ready.push(entry)
    if (line.place === 'idle') this.#turn(line)
  }

  /** Takes the next message to send; `done` has to follow. */
  take(now: number): Entry | undefined {
    this.#letSlowGo(now)
    while (this.#quick < this.#limits.most) {
      const account = this.#turning.shift()
      if (!account) return undefined
      account.isTurning = false
      const entry = this.#takeOf(account, now)
      this.#turnAccount(account)
      if (entry) return entry
    }
    return undefined
  }

  /** The request of a message that was taken is over. */
  done(entry: Entry): void {
    const flight = this.#flights.get(entry)
    if (!flight) return
    this.#flights.delete(entry)
    this.#leave(flight)
    flight.host.sending--
    this.#unblock(flight.host)
    this.#turnAccount(flight.account)
    this.#forget(flight)
  }

  /** When a request in flight becomes slow, which may let others go. */
  wakeAt(): number {
    if (this.#turning.length === 0 && this.#quick < this.#limits.maxPerAccount) return Number.POSITIVE_INFINITY
    const first = this.#quickFlights.peekAlive('quick')
    return first ? first.startedAt + this.#limits.slowAfterMs : Number.POSITIVE_INFINITY
  }

  /** The next message of an account, of the first of its lines that has room. */
  #takeOf(account: Account, now: number): Entry | undefined {
    for (let line = account.lines.shift(); line; line = account.lines.shift()) {
      line.place = 'idle'
      if (!this.#hasRoom(line)) {
        line.place = 'blocked'
        line.host.blocked.push(line)
        continue
      }
      const entry = line.ready.shiftAlive('ready')
      if (entry) this.#begin(entry, line, now)
      // Nobody will be done with what has not begun.
      else this.#unblock(line.host)
      if (line.ready.size > 0) this.#turn(line)
      else this.#endLine(line)
      if (entry) return entry
    }
    return undefined
  }

  #endLine(line: Line): void {
    this.#lines.delete(line.key)
    this.#forget(line)
  }

  #begin(entry: Entry, { account, host }: Line, now: number): void {
    entry.state = 'sending'
    const flight: Flight = { account, host, startedAt: now, bodyBytes: entry.bodyBytes, state: 'quick' }
    this.#flights.set(entry, flight)
    this.#quickFlights.push(flight)
    this.#quick++
    account.quick++
    account.uses++
    host.sending++
    host.uses++
  }

  #hasRoom({ host, account }: Line): boolean {
    const { maxPerHost, maxSlow } = this.#limits
    const isCrowded = this.#slow > maxSlow / 2 || account.slow > maxSlow / 4
    return host.sending < maxPerHost && !(host.slow > 0 && isCrowded)
  }

  #letSlowGo(now: number): void {
    for (;;) {
      const flight = this.#quickFlights.peekAlive('quick')
      if (!flight || flight.startedAt + this.#limits.slowAfterMs > now || !this.#hasRoomForSlow(flight)) return
      this.#leave(flight)
      this.#becomeSlow(flight)
    }
  }

  #hasRoomForSlow({ bodyBytes }: Flight): boolean {
    const { maxSlow, maxSlowBytes } = this.#limits
    return this.#slow < maxSlow && this.#slowBytes + bodyBytes <= maxSlowBytes
  }

  #becomeSlow(flight: Flight): void {
    flight.state = 'slow'
    this.#slow++
    this.#slowBytes += flight.bodyBytes
    flight.account.slow++
    flight.host.slow++
    this.#turnAccount(flight.account)
  }

  /** A flight no longer counts as what it was. */
  #leave(flight: Flight): void {
    if (flight.state === 'quick') {
      this.#quick--
      flight.account.quick--
    } else if (flight.state === 'slow') {
      this.#slow--
      this.#slowBytes -= flight.bodyBytes
      flight.account.slow--
      flight.host.slow--
    }
    flight.state = 'over'
  }

  #turn(line: Line): void {
    line.place = 'turning'
    line.account.lines.push(line)
    this.#turnAccount(line.account)
  }

  #turnAccount(account: Account): void {
    if (account.isTurning || account.lines.length === 0 || account.quick >= this.#limits.maxPerAccount) return
    account.isTurning = true
    this.#turning.push(account)
  }

  /** As many lines turn again as the host has room. */
  #unblock(host: Host): void {
    for (let room = this.#limits.maxPerHost - host.sending; room > 0; room--) {
      const line = host.blocked[0]
      if (!line || !this.#hasRoom(line)) return
      host.blocked.shift()
      this.#turn(line)
    }
  }

  #line(entry: Entry): Line {
    const { accountId, queue } = entry.message
    const key = `${accountId} ${queue ?? ''} ${entry.host}`
    let line = this.#lines.get(key)
    if (!line) {
      line = { key, account: this.#account(accountId), host: this.#host(entry.host), ready: new Fifo(), place: 'idle' }
      line.account.uses++
      line.host.uses++
      this.#lines.set(key, line)
    }
    return line
  }

  #forget({ account, host }: Line | Flight): void {
    if (--account.uses === 0) this.#accounts.delete(account.name)
    if (--host.uses === 0) this.#hosts.delete(host.name)
  }

  #account(name: string): Account {
    let account = this.#accounts.get(name)
    if (!account) {
      account = { name, lines: [], isTurning: false, quick: 0, slow: 0, uses: 0 }
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
