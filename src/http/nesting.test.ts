import { expect, it } from 'vitest'
import { nestsDeeperThan } from './nesting.js'

const depthOf = (json: string): number => {
  let most = 0
  while (nestsDeeperThan(new TextEncoder().encode(json), most)) most++
  return most
}

it.each([
  ['7', 0],
  ['[]', 1],
  ['{"a":[1,{"b":[]}]}', 4],
  ['[[],[],[[]]]', 3],
  ['["[[[[", "]", {"{{{": "\\"[[["}]', 2],
  ['["\\\\", [1], "\\\\\\"[[["]', 2],
  ['"[[[[', 0],
])('%s is %i levels deep', (json, depth) => {
  expect(depthOf(json)).toBe(depth)
})
