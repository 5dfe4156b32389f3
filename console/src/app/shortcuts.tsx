import { Group, Kbd, Stack, Text } from '@mantine/core'
import { useWindowEvent } from '@mantine/hooks'
import { modals } from '@mantine/modals'

const SHORTCUTS = [
  { keys: '/', does: 'Go to the search or filter of the page' },
  { keys: '?', does: 'Show this list' },
  { keys: 'Esc', does: 'Close a dialog or a menu' },
  { keys: 'Tab', does: 'Go to the next control; the first one skips to the content' },
] as const

/** Shows which keys do what. */
export function showShortcuts(): void {
  modals.open({
    title: 'Keyboard shortcuts',
    children: (
      <Stack gap="xs">
        {SHORTCUTS.map(({ keys, does }) => (
          <Group key={keys} gap="md" wrap="nowrap">
            <Kbd w={52} ta="center">
              {keys}
            </Kbd>
            <Text size="sm">{does}</Text>
          </Group>
        ))}
      </Stack>
    ),
  })
}

const isTypedInto = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest('input, textarea, select, [contenteditable="true"]') !== null

const isInDialog = (): boolean => document.querySelector('[aria-modal="true"]') !== null

/** Acts on characters, whichever keys make them: "/" is a key of its own on some keyboards and Shift+7 on others. */
export function useCharacters(actions: Readonly<Record<string, () => void>>): void {
  useWindowEvent('keydown', (event) => {
    const act = actions[event.key]
    if (act === undefined || event.ctrlKey || event.metaKey || isTypedInto(event.target) || isInDialog()) return
    event.preventDefault()
    act()
  })
}
