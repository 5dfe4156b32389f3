import { beforeAll, expect, it } from 'vitest'
import { startPostgresServer } from '../../src/store/testing/postgres-server.js'
import { nodePlace, startNode, type TestNode } from '../databases/test-node.js'
import { waitFor } from '../support/index.js'
import { DESKTOP, PHONE, type SignedIn, signIn } from './support/browser.js'
import { problemsOf, tooWide } from './support/problems.js'

/** The operator's page of nodes, with two nodes. */

let browser: SignedIn
let node: TestNode
beforeAll(async () => {
  const postgres = await startPostgresServer()
  const options = { store: `${postgres.url}/postgres`, region: 'us-east-1', standbys: 'replicated' }
  node = await startNode('one', await nodePlace(), options)
  const other = await startNode('two', await nodePlace(), options)
  const asked = { database_name: 'guarded', platform: 'aws', primary_region: 'us-east-1', plan: 'payg' }
  await waitFor(async () => ((await node.api('GET', '/v2/nodes')).body as unknown[]).length === 2, {
    what: 'both nodes',
  })
  expect((await node.api('POST', '/v2/redis/database', asked)).status).toBe(200)
  browser = await signIn(node)
  return async () => {
    await Promise.all([node.stop(), other.stop()])
    await postgres.stop()
  }
})

it('the console shows the standby of a new database, ends it, and keeps one of every database', async () => {
  const { page } = browser
  await browser.visit('/nodes', 'Nodes')
  const standbys = page.getByRole('table', { name: 'Standbys' })
  await standbys.getByText('wait for the copies').waitFor()
  await standbys.getByText('following').waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.setViewportSize(PHONE)
  expect(await tooWide(page)).toEqual([])
  await page.getByText(/at (one|two), standby (one|two)/).waitFor()
  expect((await page.getByRole('columnheader', { name: 'Node' }).boundingBox())?.width).toBeGreaterThan(120)
  await page.setViewportSize(DESKTOP)
  const choose = async (action: string, of = 'guarded') => {
    await page.getByRole('button', { name: `Actions for ${of}`, exact: true }).click()
    await page.getByRole('menuitem', { name: action }).click()
  }
  await choose('Reply at once')
  await standbys.getByText('at once').waitFor()
  // A third node would get it: until then one row of two is without a node.
  await choose('Keep another copy')
  await standbys.getByRole('cell', { name: 'none yet', exact: true }).waitFor()
  expect(await problemsOf(page)).toEqual([])
  await choose('End the standby', 'guarded at no node yet')
  await page.getByText('One other copy stays').waitFor()
  await page.getByRole('button', { name: 'End the standby' }).click()
  await standbys.getByRole('cell', { name: 'none yet', exact: true }).waitFor({ state: 'detached' })
  await choose('End the standby')
  await page.getByRole('button', { name: 'End the standby' }).click()
  await page.getByText('No database has a standby').waitFor()
  expect((await node.api('GET', '/v2/node-standbys')).body).toEqual([])

  const ask = 'Keep a standby of every database'
  await page.getByRole('button', { name: ask }).click()
  await page.getByRole('dialog', { name: ask }).waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('button', { name: 'Keep the standbys' }).click()
  await standbys.getByText('at once').waitFor()
})
