/** What is wrong with a page for the eyes and for assistive technology. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { isInTurn } from '../../support/index.js'

/** The minified build: half as large to send and to parse. */
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Pages and dialogs that this process has looked at. */
let looks = 0

/**
 * Problems of the visible page, or of the dialog above it: accessibility violations (axe) and what does not fit the window.
 * Tests expect an empty list. The violations take a sixth of the browser's processor time, so they take turns.
 */
export async function problemsOf(page: Page): Promise<string[]> {
  const violations = isInTurn(looks++, 3) ? await violationsOf(page) : []
  return [...violations, ...(await tooWide(page))]
}

async function violationsOf(page: Page): Promise<string[]> {
  // Half a megabyte to parse: once per document is enough.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(AXE)
  return await page.evaluate<string[]>(VIOLATIONS)
}

/**
 * The look of an element: the attributes of it and of its ancestors that decide its colours, without the classes that are
 * generated for one element, and without the numbers of rows.
 */
const LOOK_OF = `(() => {
  const valueOf = ({ name, value }) => {
    if (name === 'class') return value.replace(/__m__\\S+/g, '')
    if (name === 'style') return value.match(/[\\w-]*(color|background|bg|bd)[\\w-]*:[^;]+/g)
    return name.startsWith('data-') || name === 'disabled' ? name + value.replace(/\\d+/g, '') : ''
  }
  const looks = new Map([[document.body, '']])
  return function lookOf(element) {
    if (!looks.has(element))
      looks.set(element, lookOf(element.parentElement) + '/' + [element.tagName, ...[...element.attributes].map(valueOf)].join(' '))
    return looks.get(element)
  }
})()`

/**
 * Runs axe on everything but the contrasts, then on the contrasts of each text whose look is new in this document and at this
 * width, in both themes. Later checks leave out the header and the navigation, which are the same on all pages. As a string:
 * this file is compiled for Node.js.
 */
const VIOLATIONS = `(async () => {
  const root = document.documentElement
  const theme = root.dataset.mantineColorScheme
  const dialogs = [...document.querySelectorAll('[role="dialog"][aria-modal="true"]')]
  const kind = innerWidth + (dialogs.length > 0 ? ' px, dialogs' : ' px, pages')
  const all = (window.knownLooks ??= {})
  const shell = kind in all ? '.mantine-AppShell-header, .mantine-AppShell-navbar' : ':not(*)'
  const known = (all[kind] ??= new Set())
  const violations = async (include, options) => {
    const lean = { resultTypes: ['violations'], iframes: false, selectors: false }
    const found = await axe.run({ include, exclude: [shell] }, { ...lean, ...options })
    return found.violations.flatMap(({ id, nodes }) => nodes.slice(0, 3)
      .map(({ html, failureSummary }) => [root.dataset.mantineColorScheme + ':', id, 'at', html, failureSummary].join(' ')))
  }
  const lookOf = ${LOOK_OF}
  const isNew = (element) => {
    const isText = 'value' in element || [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '')
    if (!isText || element.closest(shell) !== null) return false
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false
    const look = lookOf(element)
    return !known.has(look) && known.add(look)
  }
  const scope = dialogs.length > 0 ? dialogs : [document]
  const texts = scope.flatMap((part) => [...part.querySelectorAll('body *')].filter(isNew))
  const problems = await violations(scope, { preload: false, rules: { 'color-contrast': { enabled: false } } })
  for (const each of texts.length > 0 ? ['dark', 'light'] : []) {
    root.dataset.mantineColorScheme = each
    problems.push(...(await violations(texts, { runOnly: ['color-contrast'] })))
  }
  root.dataset.mantineColorScheme = theme
  return problems
})()`

/** What does not fit the window: the page, a table, or a text that is cut; tests expect an empty list. */
export async function tooWide(page: Page): Promise<string[]> {
  const excess = await page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  )
  const cut = await page.evaluate<string[]>(CUT_OFF)
  return [...(excess > 0 ? [`the page is ${excess} px wider than the window`] : []), ...cut]
}

/** Headings, buttons, states and row menus that are cut, and tables that scroll sideways. Code may scroll. */
const CUT_OFF = `[...document.querySelectorAll('main *, [role="dialog"] *')].flatMap((element) => {
  const { overflowX, visibility } = getComputedStyle(element)
  const excess = element.scrollWidth - element.clientWidth
  if (overflowX === 'visible' || visibility === 'hidden' || element.clientWidth <= 1 || excess <= 1) return []
  const scrolls = overflowX !== 'hidden' && element.querySelector('table') !== null
  const isShort = element.matches('h1, h2, h3, th, button, td:has(button), td:has([data-tone]), [data-tone] + *, [role="tab"]')
  return scrolls || isShort ? [element.tagName + ' is cut by ' + excess + ' px: ' + element.textContent.slice(0, 80)] : []
})`
