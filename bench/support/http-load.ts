import { connect, type Socket } from 'node:net'

/** A load on one HTTP server: several connections, each with one request, or one pipeline of them, at a time. */
export interface HttpLoad {
  readonly port: number
  readonly connections: number
  /** Total number of requests. */
  readonly requests: number
  /** The bytes of a request, head and body. */
  readonly request: Buffer
  /** Requests that a connection sends together. Default 1. */
  readonly pipeline?: number
}

/** The result of a load. */
export interface HttpLoadResult {
  readonly perSecond: number
  /** Sorted. */
  readonly latenciesMs: readonly number[]
}

const HEAD_END = '\r\n\r\n'

/**
 * Calls `onAnswer` with the status of each complete answer on a socket. Understands Content-Length, which is enough
 * here.
 */
function onAnswers(socket: Socket, onAnswer: (status: number) => void): void {
  let text = ''
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    text += chunk
    for (;;) {
      const head = text.indexOf(HEAD_END)
      if (head < 0) return
      const length = Number(/content-length: (\d+)/i.exec(text.slice(0, head))?.[1] ?? 0)
      const end = head + HEAD_END.length + length
      if (text.length < end) return
      const status = Number(text.slice(9, 12))
      text = text.slice(end)
      onAnswer(status)
    }
  })
}

/** Runs a load and measures it. Rejects when an answer is not 2xx or a connection breaks. */
export async function runHttpLoad(load: HttpLoad): Promise<HttpLoadResult> {
  const { port, connections, requests, request, pipeline = 1 } = load
  const batch = Buffer.concat(new Array<Buffer>(pipeline).fill(request))
  const latencies: number[] = []
  let left = requests
  const one = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1')
      socket.setNoDelay(true)
      let sentAt = 0
      let pending = 0
      const next = (): void => {
        if (left <= 0) {
          socket.destroy()
          resolve()
          return
        }
        left -= pipeline
        pending = pipeline
        sentAt = performance.now()
        socket.write(batch)
      }
      socket.once('connect', next)
      socket.once('error', reject)
      onAnswers(socket, (status) => {
        if (status < 200 || status > 299) reject(new Error(`an answer had status ${status}`))
        latencies.push(performance.now() - sentAt)
        if (--pending === 0) next()
      })
    })
  const started = performance.now()
  await Promise.all(Array.from({ length: connections }, one))
  const seconds = (performance.now() - started) / 1_000
  return { perSecond: requests / seconds, latenciesMs: latencies.sort((a, b) => a - b) }
}

/** The bytes of a POST request. */
export function postRequest(target: string, headers: Readonly<Record<string, string>>, body: string): Buffer {
  const all = { host: '127.0.0.1', ...headers, 'content-length': String(Buffer.byteLength(body)) }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`POST ${target} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}
