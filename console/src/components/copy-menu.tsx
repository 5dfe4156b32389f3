import IconCopy from 'icon:copy'
import { Button, Menu } from '@mantine/core'
import { useTask } from '../api/hooks.js'
import { copyText } from '../lib/clipboard.js'

/** A menu that copies one of several texts, which are made when it is chosen. */
export function CopyMenu({
  titles,
  of,
  done,
}: {
  titles: readonly string[]
  /** Called for the chosen one: the texts may be long. */
  of: () => readonly { readonly title: string; readonly code: string }[]
  /** Said after a text was copied. */
  done: string
}) {
  const { mutate } = useTask((title: string) => copyText(of().find((one) => one.title === title)?.code ?? ''), { done })
  return (
    <Menu position="bottom-end" withArrow>
      <Menu.Target>
        <Button variant="default" leftSection={<IconCopy size={16} />}>
          Copy as…
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {titles.map((title) => (
          <Menu.Item key={title} onClick={() => mutate(title)}>
            {title}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
