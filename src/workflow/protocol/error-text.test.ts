import { expect, it } from 'vitest'
import { errorText } from './error-text.js'

it('a failed attempt says why there was no answer, what was thrown, what was answered, or at least the status', () => {
  const said = (body: string, error?: string) => errorText({ status: 500, error, body: Buffer.from(body) })
  expect(said('', 'the connection was refused')).toBe('the connection was refused')
  expect(said('{"error":"Error","message":"the warehouse is closed"}')).toBe('the warehouse is closed')
  expect(said('{"message":"{\\"error\\":\\"too large\\"}"}')).toBe('too large')
  expect(said(`{"error":"Error","message":"the \\"large\\" one ${'x'.repeat(500)}`)).toBe(
    `the "large" one ${'x'.repeat(184)}`,
  )
  expect(said('Bad gateway\n')).toBe('Bad gateway')
  const page = '<!DOCTYPE html>\n<html lang="en"><head><style>x</style><title> 404: Not Found </title></head></html>'
  expect(said(page)).toBe('a page in HTML: 404: Not Found')
  expect(said('<html>x')).toBe('<html>x')
  expect(said('{"message":7}')).toBe('{"message":7}')
  expect(said('x'.repeat(1_000))).toHaveLength(200)
  expect(said('')).toBe('HTTP 500')
  expect(errorText({ status: 503, error: null, body: null })).toBe('HTTP 503')
})
