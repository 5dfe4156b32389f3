import { expect } from 'vitest'
import { HttpServer, type HttpSettings } from '../index.js'

/** A listener of the queue on a free port, without routes, which knows no credentials. Internal errors fail the test. */
export const listener = (settings: Partial<HttpSettings>): HttpServer =>
  new HttpServer({
    service: 'queue',
    host: '127.0.0.1',
    port: 0,
    bodyLimitBytes: 1_000,
    version: '1.2.3',
    publicUrl: 'http://localhost:8702',
    authenticator: { basic: () => undefined, bearer: () => undefined },
    routes: [],
    onInternalError: (error) => expect.unreachable(String(error)),
    ...settings,
  })
