import { expect, it } from 'vitest'
import { errorText } from './error-text.js'

it('the text of a failed attempt is the reason for no response, the thrown message, the body, or the status', () => {
  const textOf = (body: string, error?: string) => errorText({ status: 500, error, body: Buffer.from(body) })
  expect(textOf('', 'the connection was refused')).toBe('the connection was refused')
  expect(textOf('{"error":"Error","message":"the warehouse is closed"}')).toBe('the warehouse is closed')
  expect(textOf('{"message":"{\\"error\\":\\"too large\\"}"}')).toBe('too large')
  expect(textOf(`{"error":"Error","message":"the \\"large\\" one ${'x'.repeat(500)}`)).toBe(
    `the "large" one ${'x'.repeat(184)}`,
  )
  expect(textOf('Bad gateway\n')).toBe('Bad gateway')
  const page = '<!DOCTYPE html>\n<html lang="en"><head><style>x</style><title> 404: Not Found </title></head></html>'
  expect(textOf(page)).toBe('a page in HTML: 404: Not Found')
  expect(textOf('<html>x')).toBe('<html>x')
  expect(textOf('{"message":7}')).toBe('{"message":7}')
  expect(textOf('x'.repeat(1_000))).toHaveLength(200)
  expect(textOf('')).toBe('HTTP 500')
  expect(errorText({ status: 503, error: null, body: null })).toBe('HTTP 503')
})
