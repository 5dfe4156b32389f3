import { type IncomingMessage, request } from 'node:http'
import { createConnection, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { pause, systemClock } from '../../src/base/index.js'
import { atCleanup } from '../support/index.js'
import type { TestNode } from './test-node.js'

/** A piece of a large value. */
const PIECE = Buffer.alloc(512 * 1024, 'x')

/** A client that sends a large SET in pieces. */
export class Uploader {
  received = ''
  isClosed = false
  readonly bytes = 8 * PIECE.length
  readonly #socket: Socket
  #left = this.bytes

  constructor({ port, password }: { readonly port: number; readonly password: string }) {
    this.#socket = createConnection(port, '127.0.0.1')
    this.#socket.setEncoding('latin1').on('data', (chunk: string) => (this.received += chunk))
    this.#socket.on('error', () => undefined).on('close', () => (this.isClosed = true))
    this.#socket.write(`AUTH ${password}\r\n`)
    atCleanup(() => void this.#socket.destroy())
  }

  get isLoggedIn(): boolean {
    return this.received === '+OK\r\n'
  }

  /** @param key of the value; the piece is its beginning. */
  begin(key: string): void {
    this.#socket.write(`*3\r\n$3\r\nSET\r\n$${key.length}\r\n${key}\r\n$${this.bytes}\r\n`)
    this.#piece()
  }

  /** Sends the rest, a piece at a time. */
  async finishWithin(ms: number): Promise<void> {
    while (this.#left > 0) {
      await pause(systemClock, (ms * PIECE.length) / this.bytes)
      this.#piece()
    }
    this.#socket.write('\r\n')
  }

  #piece(): void {
    this.#socket.write(PIECE)
    this.#left -= PIECE.length
  }
}

/** Sends half of a large value over REST, and waits for the answer. */
export function stallingRequest(
  { place }: TestNode,
  { rest_token }: { readonly rest_token: string },
): Promise<{ status?: number; body: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${rest_token}`, 'content-length': 8 * PIECE.length }
    const path = '/set/stalled'
    const sent = request({ port: place.restPort, path, method: 'POST', headers }, (answer) => resolve(answerOf(answer)))
    sent.on('error', reject).write(PIECE)
  })
}

/** A REST request whose head arrives long before its body. */
export class SlowRequest {
  readonly answer: Promise<{ status?: number; body: string }>
  #finish = (): void => {}

  constructor({ place }: TestNode, { rest_token }: { readonly rest_token: string }, command: readonly string[]) {
    const body = JSON.stringify(command)
    const headers = { authorization: `Bearer ${rest_token}`, 'content-length': body.length }
    this.answer = new Promise((resolve, reject) => {
      const sent = request({ port: place.restPort, method: 'POST', headers }, (response) => resolve(answerOf(response)))
      sent.on('error', reject).flushHeaders()
      this.#finish = () => sent.end(body)
    })
  }

  finish(): void {
    this.#finish()
  }
}

async function answerOf(response: IncomingMessage): Promise<{ status?: number; body: string }> {
  return { status: response.statusCode ?? 0, body: await text(response) }
}
